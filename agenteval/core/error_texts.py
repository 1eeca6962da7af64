"""Results in plain words that tell of a failed call, as tools, agent frameworks and servers of tools word
them. What merely speaks of errors (a document, a search about them, a list of them) begins otherwise, or goes
on otherwise."""

from __future__ import annotations

import re
from functools import lru_cache

_HEAD = 160
"""Characters that are looked at: a document may speak of errors further down."""
_SHORT = 400
"""Characters of a text that may be nothing but what a server says of a request."""

_NAME = r"(?:[\"'`“‘<\[][^\"'`”’>\]\n]{1,64}[\"'`”’>\]]|[\w./:-]{1,64}?)"
_ODD_NAME = r"(?:[\"'`“‘<\[][^\"'`”’>\]\n]{1,64}[\"'`”’>\]]|\w*_[\w./:-]*)"
"""A name that cannot be the next word of a sentence."""
_STOPS = r"(?=\s*(?:[.:,;!(\[\n]|$))"
_FOR = r"(?=\s*(?:[.:,;!(\[\n]|$)| (?:with|at|due|because|after|while|when|during|by|in tool|in line|as)\b)"


def _any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile(rf"\W{{0,3}}(?:{'|'.join(patterns)})", re.IGNORECASE)


_BEGINS = _any_of(
    r"[A-Za-z]+(?:Error|Exception)\b\s*[:(]",
    r"(?:(?:tool|api|http|mcp|internal|server|execution|input|argument|validation|runtime|request|unexpected|"
    r"unhandled|uncaught|unknown)[ _-]){0,2}(?:error|exception|failure|fatal)(?:\s*[:!(\[-]|\s*\.?$|"
    r", (?:tool|function|invalid|could|cannot|unable|no such|failed)\b|"
    r"\s+(?:-?\d{3}|code|executing|calling|invoking|fetching|running|while|during|occurred|in tool|"
    r"processing|from|message|retrieving|accessing|connecting|performing|updating|creating|loading|getting|"
    r"(?:on )?parsing|validating|decoding|reading|writing|sending|opening|saving|searching|querying)\b)",
    r"</?(?:tool_?(?:use_?)?)?error>",
    r"(?:[a-z_]\w{0,40}\()?(?:(?:is_)?success|ok|succeeded|successful)\s?[:=]\s?false\b",
    r"(?:[a-z_]\w{0,40}\()?(?:error|error_message)=[\"'][^\"']",
    r"traceback \(most recent",
    r"failed to\b",
    r"failed (?:executing|calling|invoking|running|parsing|with error)\b",
    r"(?:http )?[45]\d\d (?:error|internal|bad request|not found|forbidden|unauthorized|service|gateway|"
    r"too many|payment required|conflict|gone|unprocessable|locked|timeout|request timeout|"
    r"method not allowed)",
)
# java.lang.NullPointerException: …; httpx.ConnectTimeout: …
_DOTTED = re.compile(r"(?:[A-Za-z_]\w{0,40}\.){1,6}\w{0,40}(?:Error|Exception|Timeout)\b\s*(?:[:(]|$)")
_OF_TOOLS = _any_of(
    r"(?:unknown|unrecogni[sz]ed|unsupported|invalid|undefined|unavailable|no such) (?:tool|function|action)"
    rf"(?: (?:name|call|input|arguments?|schema))?(?:{_STOPS}| {_NAME}{_STOPS})",
    r"(?:there is )?no (?:tool|function|action) (?:is )?(?:found|named|called|registered|with)\b"
    rf"[^.\n]{{0,20}} {_NAME}{_STOPS}",
    rf"(?:the )?(?:tool|function)(?: {_NAME})? (?:(?:is|was|does|do|has) )?(?:not found|not (?:a )?valid|"
    r"not available|unavailable|disabled|not enabled|not recogni[sz]ed|not registered|not defined|"
    r"not supported|not exist|(?:does|do)n['’]t exist|not in (?:the )?list)"
    rf"(?: in (?:the )?(?:registry|list|tools?)\b)?{_STOPS}",
    rf"(?:tool|function|action) {_ODD_NAME} (?:not in (?:the )?list|(?:does|do)(?: not|n['’]t) exist|"
    r"(?:is |was )?not (?:found|available|supported))",
    rf"{_NAME} is not an? (?:valid|known|available|registered|recogni[sz]ed) (?:tool|function)\b",
    r"(?:the )?model tried to call (?:an )?(?:unknown|unavailable)\b",
)
_OF_CALLS = _any_of(
    r"(?:the |your |this |previous )?(?:(?:tool|function|api|mcp)(?: (?:call|use|execution|request|run|"
    rf"invocation|{_NAME}))?|(?:code |command |query )?execution) (?:(?:has|was|is|has been) )?"
    r"(?:failed|timed out|skipped|denied|rejected|aborted|interrupted|blocked|cancell?ed|raised an? \w+|"
    rf"returned an? (?:\w+ )?error|threw an? \w+|encountered an? (?:\w+ )?error){_FOR}",
    rf"calling (?:tool |function ){_NAME}[^\n]{{0,60}} failed\b",
    r"(?:the )?user (?:has )?(?:rejected|denied|declined|refused|cancell?ed) (?:the|this|your) "
    r"(?:tool|function|execution)\b",
    r"the user does(?: not|n['’]t) want to (?:proceed|take|run) with this (?:tool|action)",
    r"agent stopped due to\b",
    r"max(?:imum)?(?: number of)? (?:allowed )?(?:tool (?:calls?|uses?|usage)|function calls?|iterations?|"
    r"retries|steps|turns)(?: limit)?(?: \(\d+\))?(?: (?:was|has been|have been))? (?:reached|exceeded)"
    rf"{_FOR}",
    rf"tool (?:call|use|usage)s? limits? (?:\(\d+\) )?(?:was |has been )?(?:reached|exceeded){_STOPS}",
    rf"(?:the )?tool {_NAME} has reached (?:its|the) (?:maximum )?usage limit",
    r"(?:\w+: )?(?:line \d+: )?[\w./-]+: command not found",
    r"command failed(?: with|:|\s*$)",
)
_OF_ARGUMENTS = _any_of(
    r"invalid (?:arguments?|parameters?|params|json)(?:\s*:|\s*\.?$| for (?:tool|function)\b)",
    r"missing (?:\d+ )?required (?:positional |keyword(?:-only)? )?(?:arguments?|parameters?|params?|"
    rf"propert(?:y|ies)|inputs?|fields?)(?:\s*:|\s*\.?$| {_ODD_NAME}|(?: \w+)\s*$)",
    r"[\w.]{1,64}\(\) (?:missing|got an unexpected|takes)\b",
    r"\d+ (?:input )?validation errors? for [A-Za-z_]\w*(?:\[|\s*\n|\s*$|\s*[:(])",
    r"expecting value: line \d",
    r"json ?decode ?error",
    r"cannot read propert(?:y|ies) of ",
)
_SORRY = r"(?:(?:sorry|oops|uh-oh|whoops)\W{1,3})?"
_OF_TROUBLE = _any_of(
    rf"{_SORRY}(?:(?:I|we|the (?:tool|server|api|system|agent)) )?(?:have |has )?"
    r"(?:encountered|ran into|hit|got|returned|raised|received) (?:an? )?(?:\w+ ){0,2}(?:error|exception)"
    r"(?:\s*[:.!]|\s*$| (?:while|when) "
    r"(?:trying to (?:use|call|run|execute)|using|calling|running|executing|invoking)\b)",
    rf"{_SORRY}(?:there (?:was|has been|is) )?an? (?:\w+ ){{0,2}}(?:error|exception)"
    r"(?: (?:has |was |has been )?(?:occurred|raised|thrown|encountered))?(?:\s*[:!]|\s*\.?\s*$|"
    r"(?<=occurred)[.,]| (?:while|when|with (?:the|your)|executing|processing|running|calling|invoking|"
    r"fetching|retrieving)\b)",
    rf"{_SORRY}something went wrong"
    r"(?:\s*[.:!,]|\s*$| (?:while|when|with|on our|during)\b)",
)
# What is all that a server says. At the begin of something longer it is what that is about.
_OF_REQUESTS = _any_of(
    r"(?:(?:(?:http )?(?:request|operation|connection|query|search|response) (?:has )?(?:timed out|timeout)|"
    r"connection (?:refused|reset|aborted|closed|error|lost)|timed out|time-?out|"
    r"(?:(?:the )?(?:api|web|http) (?:call|request)|request|query|search|look-?up) failed|"
    r"(?:access|permission|authorization|authentication) (?:denied|failed)|unauthori[sz]ed|forbidden|"
    r"(?:api )?(?:rate|usage|request) limit(?: was| has been)? (?:exceeded|reached|hit)|quota exceeded|"
    r"too many requests|bad (?:request|gateway)|gateway time-?out|"
    r"service (?:is )?(?:temporarily |currently )?unavailable|"
    r"http (?:status )?(?:code )?[45]\d\d|(?:max )?retries (?:exhausted|exceeded))\b"
    rf"(?!\s*:\s*(?:what|how|why|when|causes?|a|the)\b){_FOR})",
    r"(?:unable to|could(?:n['’]t| not)|cannot|can['’]t) (?:connect to|fetch|execute|invoke|decode|"
    r"parse (?:the|tool|json|input|arguments?|llm|your)|reach (?:the )?(?:server|host|api|service)|"
    r"call (?:the )?(?:tool|function|api)|find (?:the |a )?(?:tool|function)|load (?:the )?(?:page|url|tool)|"
    r"(?:access|retrieve|read) (?:the )?(?:data|page|url|server|database|service|api|file))\b[^\n]{0,200}$",
    r"command not found\b",
)


def begins_as_error(text: str) -> bool:
    """Whether a result tells first of all that its call failed."""
    text = text.strip()
    return _is_error(text[:_HEAD], whole=text if len(text) <= _SHORT else None)


@lru_cache(maxsize=8192)
def _is_error(head: str, whole: str | None) -> bool:
    """``whole``: the text, if it is short."""
    if _DOTTED.match(head) or any(pattern.match(head) for pattern in _WHATEVER_FOLLOWS):
        return True
    return whole is not None and _OF_REQUESTS.match(whole) is not None


_WHATEVER_FOLLOWS = (_BEGINS, _OF_TOOLS, _OF_CALLS, _OF_ARGUMENTS, _OF_TROUBLE)
