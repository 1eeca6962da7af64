"""Clean conversations in Japanese: full-width digits, units of ten thousand, dates and times in words."""

from __future__ import annotations

from random import Random

from talk import Talk, tool

POLICY = (
    "あなたは和菓子店「松葉屋」の案内係です。営業時間は午前10時から午後7時まで、水曜日は定休日です。\n"
    "送料は全国一律660円、5,000円以上のご注文は無料です。ご注文の取り消しは、お客様の「はい」を確認してから行います。\n"
)
TOOLS = [
    tool("get_order", "注文を調べる", order_id="string"),
    tool("cancel_order", "注文を取り消す", order_id="string"),
    tool("search_items", "商品を探す", keyword="string"),
    tool("reserve_table", "席を予約する", date="string", time="string", people="integer"),
    tool("check_tables", "空席を調べる", date="string", people="integer"),
    tool("get_weather", "天気を調べる", city="string"),
    tool("find_train", "電車を調べる", start="string", goal="string"),
    tool("get_points", "ポイントを調べる", member_id="string"),
]
MARKS = {
    "get_order": "reads",
    "cancel_order": "destructive",
    "search_items": "reads",
    "reserve_table": "writes",
    "check_tables": "reads",
    "get_weather": "reads",
    "find_train": "reads",
    "get_points": "reads",
}
FULL = str.maketrans("0123456789,", "０１２３４５６７８９，")


def _talk(policy: str = POLICY) -> Talk:
    return Talk(TOOLS, MARKS, policy)


def chumon(rng: Random) -> Talk:
    """A sum, shipping of the policy, digits of full width, a date with 月 and 日."""
    number, price = f"M{rng.randint(10000, 99999)}", rng.choice([1200, 1480, 1650])
    order = {"order_id": number, "item": "栗羊羹", "quantity": 2, "price": price, "arrives": "2025-03-08"}
    total = price * 2
    return (
        _talk()
        .user(f"注文{number}の合計はいくらですか？")
        .call("get_order", order, order_id=number)
        .agent(
            f"ご注文{number}は栗羊羹2個で、1個{price:,}円、小計{total:,}円です。"
            f"送料660円を加えて、合計は{total + 660:,}円でございます。"
        )
        .user("いつ届きますか")
        .agent(f"{'3月8日'.translate(FULL)}（土曜日）に届く予定です。")
    )


def torikeshi(rng: Random) -> Talk:
    """Something destructive after はい."""
    number, total = f"M{rng.randint(10000, 99999)}", rng.choice([3800, 5400, 12800])
    yes = rng.choice(["はい、お願いします。", "はい", "はい、取り消してください"])
    return (
        _talk()
        .user(f"注文{number}をキャンセルしたいです。")
        .call("get_order", {"order_id": number, "total": total, "status": "準備中"}, order_id=number)
        .agent(f"ご注文{number}（{total:,}円）はまだ発送前です。取り消してもよろしいですか？")
        .user(yes)
        .call("cancel_order", {"order_id": number, "status": "取消済み"}, order_id=number)
        .agent(f"ご注文{number}を取り消しました。{total:,}円は返金いたします。")
        .user("ありがとう")
        .agent("どういたしまして。またのご利用をお待ちしております。")
    )


def shohin(rng: Random) -> Talk:
    """A range, the number of hits, a difference, and ten thousands."""
    low, high = rng.choice([860, 980]), rng.choice([10000, 20000])
    items = [{"name": "どら焼き5個入", "price": low}, {"name": "特選詰め合わせ", "price": high}]
    return (
        _talk()
        .user("お土産になる商品を教えてください")
        .call("search_items", {"items": items}, keyword="お土産")
        .agent(
            f"2点ございます。\n\n1. どら焼き5個入：{low:,}円\n2. 特選詰め合わせ：{high // 10000}万円\n\n"
            f"価格の差は{high - low:,}円です。"
        )
        .user("高いほうは送料がかかりますか？")
        .agent("いいえ、5,000円以上のご注文は送料無料です。")
    )


def yoyaku(rng: Random) -> Talk:
    """Afternoon hours, people counted with 名, a code of the tool."""
    hour, people = rng.randint(13, 17), rng.choice([2, 3, 4])
    code = f"R{rng.randint(100, 999)}{hour}"
    return (
        _talk()
        .user(f"4月18日に喫茶室を{people}人で予約したいです。午後がいいです。")
        .call(
            "check_tables", {"date": "2025-04-18", "free": [f"{hour}:00"]}, date="2025-04-18", people=people
        )
        .agent(f"4月18日（金）は午後{hour - 12}時が空いております。{people}名様でご予約なさいますか？")
        .user("はい、それで")
        .call(
            "reserve_table", {"code": code, "ok": True}, date="2025-04-18", time=f"{hour}:00", people=people
        )
        .agent(f"ご予約を承りました。4月18日{hour}時、{people}名様、予約番号は{code}です。")
    )


def tenki(rng: Random) -> Talk:
    """Degrees rounded, a difference, a share."""
    high, low = rng.choice([27.6, 24.4, 31.8]), rng.choice([18.2, 16.4])
    rain = rng.choice([10, 60])
    return (
        _talk("あなたは旅行の案内係です。")
        .user("京都の今日の天気は？")
        .call("get_weather", {"city": "京都", "high": high, "low": low, "rain_percent": rain}, city="京都")
        .agent(f"京都の最高気温は約{high:.0f}度、最低気温は約{low:.0f}度、降水確率は{rain}％です。")
        .user("気温の差は？")
        .agent(f"差は{high - low:.1f}度です。")
    )


def densha(rng: Random) -> Talk:
    """A duration of two times, a fare for two, back and forth."""
    minute, fare = rng.choice([5, 12, 20]), rng.choice([580, 770])
    train = {"depart": f"09:{minute:02}", "arrive": f"10:{minute + 15:02}", "fare": fare, "changes": 1}
    return (
        _talk("あなたは旅行の案内係です。")
        .user("大阪から奈良まで、9時ごろの電車はありますか")
        .call("find_train", train, start="大阪", goal="奈良")
        .agent(
            f"大阪を9時{minute}分に出て、奈良に10時{minute + 15}分に着く電車があります。所要時間は1時間15分、"
            f"乗り換えは1回、運賃は{fare}円です。"
        )
        .user("2人で往復だと？")
        .agent(f"お二人の往復で{fare * 4:,}円です。")
    )


def pointo(rng: Random) -> Talk:
    """Points, how many are missing, a masked number, hours of the policy."""
    points, last = rng.choice([1250, 2480]), f"{rng.randint(1000, 9999)}"
    return (
        _talk()
        .user(f"ポイントはいくつありますか。会員番号の下4桁は{last}です。")
        .call("get_points", {"member": f"****{last}", "points": points, "next_rank": 3000}, member_id=last)
        .agent(
            f"会員番号****{last}様のポイントは{points:,}ポイントです。"
            f"次のランクまであと{3000 - points:,}ポイントです。"
        )
        .user("水曜日は開いていますか")
        .agent("申し訳ございません、水曜日は定休日です。ほかの日は午前10時から午後7時まで営業しております。")
    )


TEMPLATES = (chumon, torikeshi, shohin, yoyaku, tenki, densha, pointo)
