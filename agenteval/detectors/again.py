"""Does a user ask for the same once more. One table of words for all that must know: each language adds
only reasons to say nothing, so that a word too many is no false alarm."""

from __future__ import annotations

import re

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
_ONCE_MORE_WORD = re.compile(rf"(?<![^\W_])(?:{_ONCE_MORE})(?![^\W_])", re.IGNORECASE)
# Languages that put no space between words, or whose words take endings in other scripts.
_ONCE_MORE_SIGN = re.compile(
    "もう一度|もう一回|もういちど|もういっかい|再度|再び|改めて|繰り返|くり返|くりかえ|再确认|再(?![见見])|重复|重複|"
    "重新|又|다시|한 번 더|한번 더|또|반복|مرة أخرى|مرة ثانية|أعد|كرر|مجدد|שוב|עוד פעם|फिर|दोबारा|दोहरा|"
    "دوباره|อีกครั้ง|อีกที|ซ้ำ|আবার|மீண்டும்"
)
_NOT_UNDERSTOOD = re.compile(
    r"(?<![^\W_])(?:pardon|didn['’]?t (?:get|catch|hear|see)|remind me|what did you|"
    r"no (?:lo |te |le )?(?:entend|entiend|he entendid)\w*|no o[ií]|"
    r"n[aã]o (?:entend|percebi|compreend|ouvi)\w*|"
    r"pas (?:bien )?(?:compris|entendu|saisi)|non ho (?:ben )?(?:capito|sentito)|"
    r"wie bitte|nicht (?:\w+ )?(?:verstanden|mitbekommen|mitgekriegt)|niet (?:begrepen|verstaan|gehoord)|"
    r"f[oö]rst[aå]r inte|f[oö]rstod inte|forst[aå]r ikke|forstod ikke|"
    r"nie (?:zrozumia|rozumiem|us[lł]ysza)\w*|"
    r"не (?:понял|поняла|понимаю|расслышал)\w*|anlamad[ıi]m|tidak mengerti|nerozum\w+)"
    r"|\b(?:sorry|what|huh|pardon|c[oó]mo|comment|wie|was|come|cosa|como|hoe|wat|hva|hvad|va)\s*[?？]"
    r"|分かりません|わかりません|聞こえません|没听清|没听懂|没明白|不明白|못 들었|모르겠|못 알아",
    re.IGNORECASE,
)
_LOOKS = re.compile(
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


def asks_to_look(text: str) -> bool:
    """Whether a message wants to know how something is by now ("still?", "any news?", "und jetzt?")."""
    return _LOOKS.search(text) is not None
