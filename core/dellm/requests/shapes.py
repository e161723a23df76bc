"""Objects that have a shape of their own: pronouns, numbers, the thread, the newest, everything."""

from __future__ import annotations

import re

PRONOUN = re.compile(
    r"(?:about )?(?:(?:what|whatever|all|everything)(?: that)? i(?:'ve| have)? (?:said|told you|mentioned|wrote)|(?:what|whatever) you(?:'ve| have)?(?: got| have| stored| saved| know)|it all|all (?:of )?(?:that|this|it)|that one|(?:the|that|those|these) (?:old|former|previous|earlier|first|original|other) ones?|both of them|it|that|this|those|these|them|both)\b(?: (?:again|too|all|also|for me|from you|either|today))*\Z"
)
THREAD = re.compile(
    r"(?:everything (?:in |from |about |of )?|all (?:of )?)?(?:this|our|the|that|my|today'?s|yesterday'?s|the current|the whole|our whole|this whole|this entire|the entire|our entire|our last|our current)"
    r"(?: (?:whole|entire|current|previous|last|full|earlier))* "
    r"(?:conversation|chat|thread|session|dialogue|dialog|discussion|talk|exchange)(?: (?:history|log|thread|session|so far|today|here|with me|we (?:had|have had|just had)(?: today| just now)?|completely|entirely|from today|from yesterday|that we had))*\Z"
    r"|(?:everything|all|anything|what|whatever)(?: that| of what)? we(?:'ve| have)? (?:just )?(?:discussed|talked about|said|spoke about|spoken about|covered|chatted about)(?: (?:today|here|just now|so far|in this (?:chat|conversation|session|thread)|tonight|this morning|yesterday))*\Z"
    r"|(?:everything|anything|all|what|whatever) (?:i|we)(?:'ve| have)? (?:said|told you|wrote|typed|mentioned) (?:in this|today in this|during this) (?:chat|conversation|session|thread)\Z"
)
_EVER = r"(?:(?: |,)(?:at all|completely|entirely|from scratch|forever|for good|permanently|right away|asap|totally|and everything derived from (?:them|it)|ever|please|now|so far|until now|stored|too))*"
TOTAL = re.compile(
    rf"(?:(?:absolutely |literally |just )?everything|me|it all|all(?: of it)?|everyone|the lot|all (?:about|of) me|anything about me|(?:all |everything )?about me"
    rf"|(?:everything|all|anything|whatever|what)(?: of what| that| there is)? (?:you(?:'ve| have| currently| still| might| may)* (?:collected|know|knew|remember|learned|learnt|stored?|saved?|have|hold|got|keep|kept|recorded|noted|collected|gathered)(?: (?:about|on|of|regarding|from) (?:me|us))?(?: (?:stored|saved|on file|remembered|in memory|in your memory))?"
    rf"|to know about me|about me(?: that)?(?: you (?:know|have|stored?|remember))?|(?:i|we)(?:'ve| have)? (?:ever |already )?(?:told|said|shared|given|gave|wrote|mentioned|sent|disclosed)(?: (?:to )?(?:you|here|with you))?(?: (?:so far|until now|about (?:me|myself)|ever))?)"
    rf"|(?:all |any |every |everything in |the |the whole |the entire |each |all of )*(?:of )?(?:my|your|our|the|these|those|any|stored|saved|existing) ?(?:personal |private |stored |saved |own |entire |whole |past |user |existing |long-term |previous )*(?:memory|memories|data|information|info|notes|personal details|memory bank|records|profile)(?: (?:of|about|on|regarding|concerning) (?:me|us|myself))?(?: (?:you (?:have|hold|store|stored|keep|know|saved)|that you (?:have|hold|store|keep|know))(?: (?:about|on|of) (?:me|us))?)?"
    rf"|(?:all|any|every) (?:of the )?(?:personal |private |stored |saved )*(?:memory|memories|data|information|info|notes|records|details|facts|knowledge)(?: (?:that )?you (?:have|hold|store|stored|keep|know|saved)| that exists?)?(?: (?:of|about|on|regarding|concerning|from) (?:me|us|myself))?)"
    rf"(?: (?:that )?you(?:'ve| have)? ?(?:have|hold|store|stored|keep|kept|know|saved|got|gathered|collected|learned|learnt)(?: (?:on|about|of|from) (?:me|us))?)?{_EVER}\Z"
)
NEWEST = re.compile(
    r"(?:(?:about )?(?:that|the|my|our|those|your|this) )(?:(?:very|two|three|few|couple of) )?(?:last|latest|previous|most recent|preceding|newest|prior)(?: (?P<count>\d{1,3}|one|two|three|four|five|six|seven|eight|nine|ten|couple(?: of)?|few|several))? ?"
    r"(?:(?P<noun>thing|things|message|messages|exchange|exchanges|sentence|sentences|statement|statements|remark|remarks|turns?|comments?|bits?|parts?|minutes?|hours?|one|repl(?:y|ies)|answers?|inputs?|entry|entries|memory|memories|facts?|posts?|notes?|text|utterances?|info|information|point|questions?|prompts?|query|queries|days?|weeks?)\b|\Z)"
    r"|(?:everything|anything|whatever|what|all|the (?:thing|stuff|bit|part|message|info|information|fact|sentence)(?: that)?)(?: that)? (?:i|we)(?:'ve| have)? (?:only )?just (?:now )?(?:said|told|typed|wrote|sent|mentioned|shared|gave|disclosed|revealed|entered|posted|written|confessed|admitted|discussed)\b"
    r"|(?:everything|whatever|what|that|all|the (?:thing|stuff|bit|part|message|info|information)(?: that)?) (?:i|we) (?:said|told|typed|wrote|sent|mentioned|shared|gave)(?: you)? (?:just now|a (?:minute|moment|second|sec) ago|(?:a few|two|five) (?:minutes|seconds|messages) ago|right before|last|before this|earlier just now)\b"
)
ID = r"(?:#|no\.?\s*|nr\.?\s*|number\s*|id\s*|m_?)?\s*(\d{1,12})"
ID_NOUN = r"(?:messages?|msgs?|records?|memor(?:y|ies)(?= (?:id|#|no|number|\d))|entr(?:y|ies)|notes?(?= ?[#\d])|turns?|ids?|items?(?= #)|m)"
IDS = re.compile(
    rf"(?:(?:the|my|all|both|only) )?(?:(?:{ID_NOUN})(?:[ _]?(?:ids?|numbers?|nos?\.?|nrs?\.?))?[ _]?{ID}|#\s?(\d{{1,12}}))"
    rf"((?:\s*(?:,|and|&|to|-|–|through|until|thru|up to|,\s*and|plus|or)\s*(?:{ID_NOUN}[ _]?)?{ID}\b)*)"
)
