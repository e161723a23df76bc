"""The words of English deletion requests: verbs, objects that are tasks, places that are memory."""

from __future__ import annotations

import re

FORGETTING = ("forget about", "forget", "unlearn", "unremember", "unknow", "disremember")
DELETING = (
    "delete", "erase", "remove", "expunge", "purge", "unsend", "redact", "unsave", "unstore",
    "obliterate", "eradicate", "del", "rm", "scrub", "deindex", "anonymize", "anonymise",
)  # fmt: skip
# Verbs with so many other uses that they need a sign that memory is meant.
LOOSE = (
    "wipe out", "wipe away", "wipe", "drop", "clear out", "clear up", "clear", "get rid of",
    "dispose of", "discard", "strike out", "strike", "scratch out", "scratch", "nuke", "lose",
    "destroy", "eliminate", "trash", "bin", "dump", "throw away", "throw out", "toss out", "toss",
    "shred", "kill", "cut out", "cut", "retract", "flush", "zap", "ditch", "let go of",
    "disregard", "blot out", "rub out", "cross out", "reset", "clean out", "clean up", "take down",
    "do away with", "pull", "rescind", "take out", "withdraw", "blank out", "chuck", "omit",
    "blank", "part with", "clean",
)  # fmt: skip
KEEPING = (
    "remember", "keep", "hold on to", "hold onto", "hold", "retain", "know", "store", "save",
    "have", "memorize", "memorise", "record", "log", "track", "recall", "use",
)  # fmt: skip

_IRREGULAR = {
    "forget": ("forgetting", "forgotten|forgot"), "get": ("getting", "gotten|got"),
    "strike": ("striking", "struck|stricken"), "lose": ("losing", "lost"), "cut": ("cutting", "cut"),
    "throw": ("throwing", "thrown"), "let": ("letting", "let"), "undo": ("undoing", "undone"),
    "take": ("taking", "taken"), "keep": ("keeping", "kept"), "hold": ("holding", "held"),
    "know": ("knowing", "known"), "have": ("having", "had"), "do": ("doing", "done"),
    "unknow": ("unknowing", "unknown"), "withdraw": ("withdrawing", "withdrawn"),
    "unsend": ("unsending", "unsent"),
}  # fmt: skip
_DOUBLING = frozenset({"scrub", "drop", "bin", "rub", "reset", "zap", "log", "omit"})


def _forms(verb: str) -> tuple[str, str]:
    """-ing form and past participle (alternatives separated by a bar) of a verb or phrase."""
    word, _, particle = verb.partition(" ")
    if word in _IRREGULAR:
        ing, past = _IRREGULAR[word]
    elif word in _DOUBLING:
        ing, past = f"{word}{word[-1]}ing", f"{word}{word[-1]}ed"
    elif word.endswith("e"):
        ing, past = f"{word[:-1]}ing", f"{word}d"
    elif word.endswith("y"):
        ing, past = f"{word}ing", f"{word[:-1]}ied"
    else:
        ing, past = f"{word}ing", f"{word}ed"
    tail = f" {particle}" if particle else ""
    return ing + tail, "|".join(form + tail for form in past.split("|"))


def _choice(words: list[str]) -> str:
    ordered = sorted({form for word in words for form in word.split("|")}, key=len, reverse=True)
    return "|".join(re.escape(word).replace(r"\ ", r"\s+") for word in ordered)


_ERASING = [*FORGETTING, *DELETING, *LOOSE]
VERB = _choice(_ERASING)
VERB_ING = _choice([_forms(verb)[0] for verb in _ERASING])
VERB_PAST = _choice([_forms(verb)[1] for verb in _ERASING])
KEEP = _choice(list(KEEPING))
KEEP_ING = _choice([_forms(verb)[0] for verb in KEEPING])
KEEP_PAST = _choice([_forms(verb)[1] for verb in KEEPING])
_LOOSE_FORMS = re.compile(rf"(?:{_choice([form for v in LOOSE for form in (v, *_forms(v))])})\Z")
_FORGET_FORMS = re.compile(
    rf"(?:{_choice([form for v in FORGETTING for form in (v, *_forms(v))])})\Z"
)


def is_loose(verb: str) -> bool:
    """Tell whether the verb (any form) is used for so much else that memory must be in sight."""
    return bool(_LOOSE_FORMS.match(re.sub(r"\s+", " ", verb)))


def is_forgetting(verb: str) -> bool:
    """Tell whether the verb (any form) belongs to the mind rather than to storage."""
    return bool(_FORGET_FORMS.match(re.sub(r"\s+", " ", verb)))


_ADJECTIVES = (
    r"(?:(?:shared|assistant|assistant's|long[- ]term|short[- ]term|internal|own|chat|household"
    r"|family|saved|active|entire|whole|conversation|stored|team|personal|project|ai|user|agent)\s+){0,3}"
)
_OWNERS = r"(?:your|the|my|this|our|its|that|any|all)"
_STORES = (
    r"(?:memory|memories|mind|brain|head|notes?|records?|database|storage|knowledge(?: base)?"
    r"|log(?:s|book)?|files? on me|systems?|data|history|conversation|chat|dossier|context|archives?"
    r"|chart|workspace|recollection|profile|notebook|backups?|memory bank|vault|servers?|thread|session)"
)
MEMORY_PLACE = re.compile(
    rf"\s*\b(?:(?:from|in|off|out of|on|within|across|of)\s+(?:(?:{_OWNERS}\s+)?{_ADJECTIVES}{_STORES}|(?:[\w-]+\s+){{1,3}}?memor(?:y|ies))\b(?:\s+(?:of|about|on)\s+me\b)?"
    r"|(?:from|off) (?:the |your )?record\b|on file\b|from (?:what|everything|anything|all|whatever) (?:that )?you (?:know|store|stored|have|hold|remember|keep|save)\b(?: (?:about|on|of) me)?|from existence)"
)
ABOUT_MEMORY = re.compile(
    r"\b(?:(?:i|we)(?:'ve| have|'d| had)?(?: (?:just|ever|already|once|previously|recently|earlier))* "
    r"(?:said|told|mentioned|shared|wrote|gave|typed|sent|discussed|talked|disclosed|revealed|asked|say|tell|mention)"
    r"|you(?:'ve| have| currently| still)* (?:know|knew|remember|learned|learnt|stored?|saved?|have|hold|got|keep|kept"
    r"|recorded|noted|collected|gathered|remembered)"
    r"|(?:note|notes|memory|memories|fact|facts|info|information|detail|details|data|reference|references"
    r"|mention|mentions|record|records|trace|traces|entry|entries|knowledge|bits?|part|thing|things|stuff"
    r"|line|message|messages|sentence|piece|everything|anything|all|statement|remark|comment|memo"
    r"|recollection|content)s? "
    r"(?:about|of|on|that|where|when|saying|regarding|concerning|which|mentioning|containing|related|relating"
    r"|involving|with|to do)"
    r"|the (?:bit|part|thing|stuff|fact)\b|messages? (?:#|no|number|\d)|memor(?:y|ies)\b)"
)

_SOFTWARE = """file folder directory document doc docs spreadsheet sheet slide page tab window app
application software package library branch repo repository commit code function method class variable
import bug test row column table cell index query script module node element item array string
character characters whitespace space comma bracket duplicate cache cookie plugin extension widget icon button
container pod server instance bucket field dependency loop virus malware game partition line lines
cluster namespace tag label-element div css html json semicolon cronjob user users node_modules prefix
suffix desktop download downloads attachment pdf zip volume"""
_WRITING = """paragraph section chapter stanza verse heading title footnote bullet essay letter draft
article abstract intro introduction conclusion typo adverb adjective background watermark layer caption
hyphen header footer manuscript poem story novel paper report text word words slideshow presentation
resume cv image picture photo photos video audio clip song"""
_ORGANISER = """calendar event events appointment meeting reminder reminders alarm alarms timer timers
todo todos to-do task tasks list lists playlist reservation reservations booking order orders subscription
cart basket ticket flight schedule agenda album queue bill payment transfer transaction charge newsletter
mailing-list contacts voicemail voicemails emails mails inbox mailbox spam folder notifications settings
setting items lunch dinner breakfast brunch party sync contents todolist"""
_THINGS = """phone smartphone laptop computer pc mac tablet ipad drive disk usb browser bluetooth printer
screen lights light lamp tv camera account accounts website site network connection whiteboard blackboard
board stain stains floor table oven wall walls shirt jeans carpet dishes trash garbage rust paint mold mould
tree weeds weed snow ice dust hair skin fat bone bones seed seeds peel shell lid cover wheel tire tyre
bolt screw battery sticker tattoo ant ants mice rats bugs mosquito mosquitoes pan pot chicken meat fish egg
eggs milk bread butter onion garlic salt sugar cake cheese shoes coat hat makeup splinter tick furniture
sofa couch bed rug curtain kitchen garage garden lawn gutter drain pipe sink fridge freezer engine filter
plug cable wire soap water ink wax gum glue car bike window windows counter desk shelf attic basement tub
mirror weight wrinkles pimples acne smell odor odour wallpaper tiles tile sauce soup pasta rice oil iron
skies sky path road way air deck scan scanner macbook iphone android chromebook process port service group channel recipe
subject traffic credits server logs recording template"""
_BODY = """tears throat hair eyes face nose hands hand teeth tooth headache hiccups fear fears anxiety stress pain cold cough
habit habits debt debts belly appendix mole wart kidney tonsils stitches glasses doubts worries losses boyfriend
kids weight braces cast tumour tumor nails beard breath hangover blister boots socks sweater clothes bag luggage"""
TASK_NOUNS = frozenset(f"{_SOFTWARE} {_WRITING} {_ORGANISER} {_THINGS} {_BODY}".split())
_PRODUCTS = """shopping grocery calendar sql git python java javascript search browsing browser npm docker chrome firefox
safari edge spam facebook instagram twitter linkedin google spotify netflix amazon todo youtube"""
TASK_MODIFIERS = frozenset(_PRODUCTS.split())
# Nouns that make a task noun before them part of a personal fact ("my phone number").
_INFORMATION = """number numbers address addresses code codes name names detail details date dates password passwords
pin pins info information data preference preferences note notes contact model plate key keys history idea plan plans
phrase label value token passphrase location mapping birthday size"""
PERSONAL_HEADS = frozenset(_INFORMATION.split())
TASK_PLACE = re.compile(
    r"\b(?:from|in|on|off|of|at|to|for|inside|within|under|after|before|into|out of)\s+"
    r"(?:(?:the|my|our|your|this|that|these|his|her|their|a|an|all|each|every|[a-z]+'s)\s+)?"
    r"([\w'.-]+(?:\s+(?!(?:from|in|on|off|of|at|to|for|with|that|which|and|or|by|about|is|are|i|we|you)\b)[\w'.-]+){0,4})"
)
FILE_NAME = re.compile(
    r"(?:^|[\s/\\])[\w.-]+\.(?:py|js|ts|txt|md|pdf|docx?|xlsx?|csv|json|html?|css|java|cpp|c|h|go|rs|rb"
    r"|sh|png|jpe?g|gif|zip|yaml|yml|toml|sql|ipynb|log|exe)\b|(?:^|\s)-{1,2}\w+|(?:^|\s)[./~]+/\w"
)
IDIOM = re.compile(
    r"(?:me nots?\b|my (?:back|head|mind)\Z|me a line|a line|the ball|the air|the deck|the way|the floor with|while the iron|your throat"
    r"|my throat|it here|a deal|the mood|me off|back|the bill|in|by|off|out|up|your heart|weight|time"
    r"|some time|one's|a chord|the beat|the act|a balance|gold|the slate|the lights|the sides?)\b"
)
