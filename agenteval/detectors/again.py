"""Does a user ask for the same once more, and may a call be made again. One table of words for all that must
know: each language adds only reasons to say nothing, so that a word too many is no false alarm."""

from __future__ import annotations

import re
from collections.abc import Container
from itertools import pairwise

from agenteval.detectors.calls import is_same, same_result
from agenteval.detectors.consent import refuses, says_yes
from agenteval.detectors.conversation import Conversation, PlacedCall
from agenteval.detectors.deeds import nouns_of
from agenteval.detectors.orders import leaves_alone
from agenteval.detectors.verbs import is_marked, nature_of, words_of
from agenteval.expressions import expression

_ONCE_MORE = (
    # English
    r"again|repeat\w*|once more|one more time|say that|come again|resend|re-?send|re-?check\w*|"
    # Spanish, Portuguese
    r"otra vez|de nuevo|nuevamente|una vez m[aá]s|rep[ei]t\w*|v(?:uelv|olv)\w+ a|"
    r"de novo|outra vez|novamente|mais uma vez|"
    # French, Italian, Romanian
    r"encore|[àa] nouveau|de nouveau|une nouvelle fois|une autre fois|r[ée]p[éèe]t\w*|redi(?:s|re|tes)|"
    r"di nuovo|nuovamente|ancora|un'altra volta|un’altra volta|ripet\w*|ridi\w{2,}|"
    r"din nou|[îi]nc[ăa] o dat[ăa]|repet\w*|"
    # German, Dutch
    r"noch ?(?:ein)?mal\w*|nochma|erneut|abermals|wieder|wiederhol\w*|neuerlich|"
    r"opnieuw|nogmaals|nog eens|nog (?:een|één) keer|weer|herhaal\w*|herhalen|"
    # Swedish, Norwegian, Danish, Finnish
    r"igen|om igen|en g[åa]ng till|p[åa] nytt|upprepa\w*|igjen|en gang til|gjenta\w*|gentag\w*|"
    r"uudelleen|uudestaan|taas|toista\w*|"
    # Polish, Czech, Russian, Ukrainian, Bulgarian, Greek, Hungarian
    r"jeszcze raz|ponownie|znowu|zn[oó]w|powt[oó]rz\w*|"
    r"znovu|je[sš]t[eě] jednou|zopakuj\w*|op[eě]t|"
    r"ещ[её] раз\w*|снова|опять|заново|повтор\w*|ще раз|знову|отново|пак|"
    r"ξανά|πάλι|επαν[άα]λ\w*|"
    r"[úu]jra|megint|m[ée]g egyszer|ism[ée]t\w*|"
    # Turkish, Indonesian, Vietnamese, Swahili
    r"tekrar\w*|yeniden|bir daha|yine|lagi|sekali lagi|ulangi\w*|lần nữa|nhắc lại|lại|tena"
)
_ONCE_MORE_WORD = expression(rf"(?<![^\W_])(?:{_ONCE_MORE})(?![^\W_])", re.IGNORECASE)
# Languages that put no space between words, or whose words take endings in other scripts.
_ONCE_MORE_SIGN = expression(
    "もう一度|もう一回|もういちど|もういっかい|再度|再び|改めて|繰り返|くり返|くりかえ|再确认|再(?![见見])|重复|重複|"
    "重新|又|다시|한 번 더|한번 더|또|반복|مرة أخرى|مرة ثانية|أعد|كرر|مجدد|שוב|עוד פעם|फिर|दोबारा|दोहरा|"
    "دوباره|อีกครั้ง|อีกที|ซ้ำ|আবার|மீண்டும்"
)
_NOT_UNDERSTOOD = expression(
    r"(?<![^\W_])(?:pardon|didn['’]?t (?:get|catch|hear|see)|remind me|what did you|"
    r"no (?:lo |te |le )?(?:entend|entiend|he entendid)\w*|no o[ií]|"
    r"n[aã]o (?:entend|percebi|compreend|ouvi)\w*|"
    r"pas (?:bien )?(?:compris|entendu|saisi)|non ho (?:ben )?(?:capito|sentito)|"
    r"wie bitte|nicht (?:\w+ )?(?:verstanden|mitbekommen|mitgekriegt)|niet (?:begrepen|verstaan|gehoord)|"
    r"f[oö]rst[aå]r inte|f[oö]rstod inte|forst[aå]r ikke|forstod ikke|"
    r"nie (?:zrozumia|rozumiem|us[lł]ysza)\w*|"
    r"не (?:понял|поняла|понимаю|расслышал)\w*|anlamad[ıi]m|tidak mengerti|nerozum\w+)"
    # Alone: "when will it come?" was understood.
    r"|(?:^|[.!?,;:…\n]\s*|\b(?:i['’]?m|you|say) )"
    r"(?:sorry|what|huh|pardon|c[oó]mo|comment|wie|was|come|cosa|como|hoe|wat|hva|hvad|va)\s*[?？]"
    r"|分かりません|わかりません|聞こえません|没听清|没听懂|没明白|不明白|못 들었|모르겠|못 알아",
    re.IGNORECASE,
)
_LOOKS = expression(
    r"(?<![^\W_])(?:refresh|still|latest|current(?:ly)?|double.?check|any(?:thing)? new|changed|status|"
    r"verify|make sure|(?:and|about) now|"
    # Other languages, written without their accents: a message with them is let pass anyhow.
    r"todavia|aun|sigue|ahora|comprueb\w*|verifi\w*|revis[ae]\w*|actuali[sz]\w*|"
    r"ainda|agora|confere|confira|atuali[sz]\w*|toujours|maintenant|adesso|ora|controll\w*|aggiorn\w*|"
    r"noch|inzwischen|mittlerweile|jetzt|aktuell\w*|nachsehen|nachschauen|nog|controleer\w*|kijk|"
    r"fortfarande|kolla\w*|fortsatt|stadig|nadal|teraz|sprawdz\w*|hala|simdi|kontrol\w*|masih|sekarang|"
    r"cek)(?![^\W_])",
    re.IGNORECASE,
)


def asks_again(text: str) -> bool:
    """Whether a message asks for something once more ("again", "noch einmal", "もう一度")."""
    return _ONCE_MORE_WORD.search(text) is not None or _ONCE_MORE_SIGN.search(text) is not None


def did_not_understand(text: str) -> bool:
    """Whether a message says that an answer was not understood ("pardon?", "wie bitte?")."""
    return _NOT_UNDERSTOOD.search(text) is not None


_REQUESTS = expression(
    r"\b(?:(?:please|kindly) (?:provide|share|tell|give|send|enter)|(?:can|could|may) (?:you|"
    r"I) (?:please )?(?:provide|share|"
    r"tell|give|have)|need your|what is your|necesito|precisamos?|preciso|necesitamos|indique|facilíte\w*|"
    r"proporcion\w*|"
    r"benötige|brauche|nennen sie|geben sie|besoin d|indiquez|donnez|fournir|bisogno d|indic[ah]\w*|"
    r"fornisc\w*|informe|"
    r"nodig|geef|heb ik)\b",
    re.IGNORECASE,
)
_GIVEN = expression(r"[\d@?？]|\S\s+[A-ZÀ-Ý](?!['’]|\s|$)")
_FEW = 6


def gave_nothing(said: str, asked: str) -> bool:
    """Whether a user was ``asked`` for something and answered in a few words without a name, figure, address,
    question, yes or no, so that it has to be asked for once more."""
    if _GIVEN.search(said) or len(said.split()) > _FEW or not _REQUESTS.search(asked):
        return False
    return not refuses(said) and not says_yes(said, asked=True)


def asks_to_look(text: str) -> bool:
    """Whether a message wants to know how something is by now ("still?", "any news?", "und jetzt?")."""
    return _LOOKS.search(text) is not None


_TIMES = expression(
    r"(?<![^\W_])(?:twice|thrice|(?:two|three|four) times|(?:zwei|drei|vier)mal|(?:dos|tres) veces|"
    r"(?:deux|trois) fois|"
    r"(?:due|tre) volte|(?:duas|três) vezes|(?:twee|drie) keer|dwa razy|iki kez|dua kali)(?![^\W_])|两次|"
    r"兩次|2回|二回|두 번",
    re.IGNORECASE,
)
_COUNTED = expression(
    r"(?<![^\W_])(?:two|three|four|five|six|[2-9]|several|a couple of|another|zwei|drei|dos|tres|deux|"
    r"trois|due|tre|"
    r"duas|dois|três|twee|drie)((?: [^\W\d_]+){1,3})",
    re.IGNORECASE,
)
_WAITS = expression(
    r"(?<![^\W_])(?:wait|poll\w*|keep (?:checking|polling|trying|an eye|looking)|as soon as (?:it|the)|"
    r"(?:until|till|once|when)"
    r" (?:it|they|the \w+|\S+)(?:['’]s| is| are| has) (?:done|finished|complete\w*|ready|up|over|through|"
    r"ended)|monitor|watch|"
    r"warte\w*|bis (?:es|er|sie|\S+) (?:fertig|da|durch|beendet)|sobald|esper[ae]|hasta que|attend\w*|"
    r"jusqu['’]à ce|dès que|"
    r"aspett\w*|finché|appena|aguard\w*|até que|assim que|wacht|totdat|zodra)(?![^\W_])|待|等到|기다",
    re.IGNORECASE,
)


def asks_for_several(text: str, things: Container[str]) -> bool:
    """Whether a message asks for the same more than once: "twice", or "two separate transfers" where
    ``transfer`` is one of the ``things``."""
    if _TIMES.search(text):
        return True
    words = " ".join(_COUNTED.findall(text.lower())).split()
    return any(word in things or word.rstrip("s") in things for word in words)


def asks_to_wait(text: str) -> bool:
    """Whether a message asks to look until something has happened ("wait until it is done")."""
    return _WAITS.search(text) is not None


# ── calls that are made again ────────────────────────────────────────────────────────────────────


def is_meant_twice(conversation: Conversation, earlier: PlacedCall, placed: PlacedCall) -> bool:
    """Whether the user asked for it more than once: "two separate transfers"."""
    said = " ".join(
        turn.user[:2000] for turn in conversation.turns[max(0, placed.turn - 1) : placed.turn + 1]
    )
    return asks_for_several(said, nouns_of(earlier.call.name))


def is_polled(conversation: Conversation, earlier: PlacedCall, placed: PlacedCall) -> bool:
    """Whether a look-up is made until something has happened: the user asked to wait for it, or it has
    happened in the end."""
    if not _RUNS.search(placed.call.name):
        return False
    if asks_to_wait(conversation.turns[placed.turn].user[:2000]):
        return True
    return any(
        each.turn == placed.turn
        and is_same(each.call, placed.call)
        and not same_result(each.call.result, earlier.call.result)
        for each in conversation.calls[placed.index + 1 :]
    )


_RUNS = expression(
    r"status|progress|poll|wait|watch|monitor|queue|track|job|task|build|deploy|export|import|process|run|"
    r"state",
    re.IGNORECASE,
)
# What is done twice by a second call, whatever the first has left.
_EACH_TIME = frozenset(("refund", "send", "pay", "order", "book", "issue", "transfer"))
_MAKING = frozenset(("create", "submit", "place", "file"))
_OPENING = (("open",), ("raise",), ("log",))
_CASES = frozenset(("case", "ticket", "dispute", "claim", "issue", "incident", "complaint", "request"))
_UNFINISHED = expression(
    r"pending|queued|waiting|otp|verif|confirm|require|progress|authori[sz]|draft|preview|fail|not_",
    re.IGNORECASE,
)


def was_done(conversation: Conversation, earlier: PlacedCall, placed: PlacedCall) -> bool:
    """Whether an act was done in an earlier turn and nothing that was said since can ask for it again."""
    call, result = earlier.call, earlier.call.result
    kinds = nature_of(call.name).kinds
    words = words_of(call.name)
    makes = not _MAKING.isdisjoint(words[:1]) or (words[:1] in _OPENING and not _CASES.isdisjoint(words))
    if kinds.isdisjoint(_EACH_TIME) and not makes:
        return False
    if (
        not call.args
        or result is None
        or placed.call.result is None
        or _UNFINISHED.search(result.text[:4000])
    ):
        return False
    turns = conversation.turns[earlier.turn : placed.turn + 1]
    return all(
        not asks_again(turn.user) and leaves_alone(turn.user, before.answer, call)
        for before, turn in pairwise(turns)
    )


_GOES_STALE = expression(
    r"status|now|current|time|date|today|latest|live|price|quote|rate|stock|weather|forecast|avail|"
    r"track|poll|wait|watch"
    r"|monitor|inbox|messages|mail|notification|queue|progress|balance|screen|snapshot|random|search",
    re.IGNORECASE,
)


def may_be_stale(conversation: Conversation, earlier: PlacedCall, placed: PlacedCall) -> bool:
    """Whether a look-up may tell something else by now: it is of what changes by itself, the user asked to
    look again, or did something meanwhile."""
    name = placed.call.name
    if placed.call.result is None or earlier.call.result is None:
        return True
    if _GOES_STALE.search(name) and not is_marked(conversation.tools.get(name)):
        return True
    said = conversation.turns[placed.turn].user[:2000]
    if not said.isascii() or asks_again(said) or asks_to_look(said):
        return True
    since = conversation.turns[earlier.turn + 1 : placed.turn + 1]
    return any(_HAS_ACTED.search(turn.user[:2000]) for turn in since)


# The user did something meanwhile, of which a look-up may tell.
_HAS_ACTED = expression(
    r"\bI(?:['’]ve| have)?(?: just| now| already| also)* (?:paid|submitted|sent|made|done|did|changed|"
    r"updated|cleared|transferred|deposited|uploaded|added|removed|deleted|fixed|set|switched|turned|"
    r"restarted|reset|"
    r"confirmed|accepted|approved|signed|filled|completed|finished|installed|connected|moved|cancell?ed|"
    r"booked|ordered|bought|pushed|committed|merged|saved|edited|renamed|closed|opened|replied|tried)\b",
    re.IGNORECASE,
)
