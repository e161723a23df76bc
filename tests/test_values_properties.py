"""Values under random spelling: generated separators, digits, case, normal forms and invisibles."""

from __future__ import annotations

import datetime as dt
import unicodedata
from itertools import pairwise

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dellm.errors import SelectorError
from dellm.values import (
    aliases,
    byte_spellings,
    contains,
    described,
    find,
    needle,
    quick,
    recognise,
    redact,
    redact_clause,
    sentences,
    value_matches_description,
)

ZEROS = "0٠۰०০๐０𝟎𝟶"
INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff\u00ad"
DASHES = "-\u2010\u2011\u2012\u2013\u2212\uff0d"
SPACES = " \u00a0\u2009\u202f\u3000"
# What may stand around a value: prose without anything that could continue the value.
PROSE = st.sampled_from(
    ["", "I think ", "Note: ", "(", "Ask them: ", "she said “", "今日は ", "смотри ", "a\nb\n", "¿"]
)
AFTER = st.sampled_from(
    ["", ".", " is it", ", right?", ")", "” she said", "\nnext", " そう", "!", "; so"]
)
# Any text at all, with the characters that have broken matchers before.
WILD = st.text(
    alphabet=st.one_of(
        st.characters(),
        st.sampled_from("aA1 .@-+#_/:'\"()\u0301\u200b\u0000\ud800\ud83dßİıﬁ½①㎏각가ก็राが🚀…ﷺ"),
    ),
    max_size=60,
)
few = settings(max_examples=150, deadline=None)


@st.composite
def in_digits(draw: st.DrawFn, text: str) -> str:
    """`text` with its digits in one script and invisible characters between its characters."""
    zero = draw(st.sampled_from(ZEROS))
    shown = [chr(ord(zero) + int(c)) if c.isascii() and c.isdecimal() else c for c in text]
    return draw(with_invisibles("".join(shown)))


@st.composite
def with_invisibles(draw: st.DrawFn, text: str) -> str:
    out = list(text)
    for _ in range(draw(st.integers(0, 3))):
        if len(out) > 1:
            out.insert(draw(st.integers(1, len(out) - 1)), draw(st.sampled_from(INVISIBLE)))
    return "".join(out)


@st.composite
def phone_spellings(draw: st.DrawFn) -> tuple[str, str]:
    area, exchange = draw(st.integers(201, 989)), draw(st.integers(200, 999))
    line = f"{draw(st.integers(0, 9999)):04d}"
    gap = draw(st.sampled_from(["", " ", ".", *DASHES, *SPACES, " - "]))
    shown_area = draw(st.sampled_from([f"({area})", str(area)])) if gap else str(area)
    prefix = draw(st.sampled_from(["", "+1 ", "+1-", "001 ", "1-", "011 1 ", "+1"]))
    written = draw(in_digits(f"{prefix}{shown_area}{gap}{exchange}{gap}{line}"))
    return f"+1{area}{exchange}{line}", written


@st.composite
def card_spellings(draw: st.DrawFn) -> tuple[str, str]:
    from stdnum import luhn

    body = str(draw(st.integers(400000000000000, 499999999999999)))
    card = body + luhn.calc_check_digit(body)
    gap = draw(st.sampled_from(["", " ", *DASHES, "\u00a0", "."]))
    return card, draw(in_digits(gap.join(card[at : at + 4] for at in range(0, 16, 4))))


@st.composite
def date_spellings(draw: st.DrawFn) -> tuple[str, str]:
    day = draw(
        st.dates(
            min_value=dt.date(1931, 1, 1),
            max_value=dt.date(2029, 12, 31),
        )
    )
    month = day.strftime("%B")
    forms = [
        f"{day:%Y-%m-%d}", f"{day:%d/%m/%Y}", f"{day:%m/%d/%Y}", f"{day:%d.%m.%y}", f"{day:%Y%m%d}",
        f"{month} {day.day}, {day.year}", f"{day.day} {month} {day.year}", f"{month.upper()} {day.day}th {day.year}",
        f"{day.day}. {month[:3]} {day.year}", f"the {day.day}th of {month}, {day.year}"[4:], f"{day.year}年{day.month}月{day.day}日",
    ]  # fmt: skip
    return day.isoformat(), draw(in_digits(draw(st.sampled_from(forms))))


@st.composite
def email_spellings(draw: st.DrawFn) -> tuple[str, str]:
    local = draw(st.from_regex(r"[a-z]{2,8}(?:[._+][a-z0-9]{1,6})?", fullmatch=True))
    domain = draw(st.from_regex(r"[a-z]{2,8}\.(?:com|io|co\.uk|example)", fullmatch=True))
    address = f"{local}@{domain}"
    forms = [address, address.upper(), address.title(), f'"{local}"@{domain}', address.replace("@", "＠"),
             address.replace("@", " at ").replace(".", " dot "), address.replace("@", " [at] ").replace(".", "(dot)")]  # fmt: skip
    return address, draw(with_invisibles(draw(st.sampled_from(forms))))


WORDS = ["Paris", "Żółć", "José García", "Łukasz", "Straße", "Иван Петров", "Νίκος", "김민지", "北京", "สมชาย ใจดี",
         "राज शर्मा", "محمد علي", "Nguyễn Văn Hùng", "O'Neil", "Maple House", "KX-4471", "raven42#secure", "ACME-CORP"]  # fmt: skip


@st.composite
def word_spellings(draw: st.DrawFn) -> tuple[str, str]:
    word = draw(st.sampled_from(WORDS))
    shown = draw(st.sampled_from([str.upper, str.lower, str.title, str]))(word)
    shown = unicodedata.normalize(draw(st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"])), shown)
    shown = shown.replace(" ", draw(st.sampled_from([" ", "\u00a0", "  ", "\n", " - ", "_"])))
    shown = shown.replace("'", draw(st.sampled_from("'’ʼ")))
    return word, draw(with_invisibles(shown))


SPELLED = st.one_of(
    phone_spellings(), card_spellings(), date_spellings(), email_spellings(), word_spellings()
)


@few
@given(SPELLED, PROSE, AFTER)
def test_one_span_covers_exactly_the_value_in_any_spelling(
    pair: tuple[str, str], before: str, after: str
) -> None:
    wanted, written = pair
    text = before + written + after
    spans = find(needle(wanted), text)
    assert [text[span.start : span.end] for span in spans] == [written]
    assert not contains(needle(wanted), redact(text, spans))
    assert redact(text, spans) == f"{before}[redacted]{after}"


@few
@given(SPELLED, WILD, WILD)
def test_after_redaction_nothing_is_left_in_any_surroundings(
    pair: tuple[str, str], before: str, after: str
) -> None:
    wanted, written = pair
    wanted_needle = needle(wanted)
    text = before + written + after
    spans = find(wanted_needle, text)
    assert quick(wanted_needle)(text) == bool(spans)
    assert not contains(wanted_needle, redact(text, spans))
    clause = redact_clause(text, spans)
    assert clause is None or not contains(wanted_needle, clause)


@few
@given(WILD, WILD)
def test_no_text_makes_anything_raise_and_spans_are_ordered(value: str, text: str) -> None:
    found = recognise(text)
    assert all(0 <= value.start < value.end <= len(text) for value in found)
    assert all(one.end <= two.start for one, two in pairwise(found))
    assert "".join(sentences(text)) == text
    aliases(text)
    wanted = described(value)
    if wanted is not None:
        value_matches_description(wanted, text)
    try:
        sought = needle(value)
    except SelectorError:
        return
    spans = find(sought, text + value + text)
    assert all(one.end <= two.start for one, two in pairwise(spans))
    assert all(len(spelling) >= 4 for spelling in byte_spellings(sought))


@few
@given(SPELLED)
def test_a_recognised_value_is_found_again_by_its_own_needle(pair: tuple[str, str]) -> None:
    text = f"Note: {pair[1]} and more."
    for value in recognise(text):
        shown = text[value.start : value.end]
        assume(value.kind != "money")
        assert any(
            span.start <= value.start and value.end <= span.end
            for span in find(needle(shown, kind=value.kind), text)
        )


@few
@given(st.integers(1000, 999999), st.integers(0, 10**12))
def test_a_number_is_never_found_inside_a_longer_run_of_digits(number: int, other: int) -> None:
    assume(str(number) != str(other))
    assert not contains(needle(str(number), kind="number"), f"total {other}x")
    assert not contains(needle(str(number), kind="number"), f"id {other}{number}7 stays")
