"""Values in any spelling: found whole, found everywhere, and nothing else found."""

from __future__ import annotations

import gc
import re

import pytest
import regex

from dellm import Memory
from dellm.errors import SelectorError
from dellm.values import Needle, contains, find, needle, quick, recognise, redact

SAME = [
    ("+1 415 555 0142", "(415) 555-0142"),
    ("+1 415 555 0142", "415.555.0142"),
    ("+1 415 555 0142", "4155550142"),
    ("+1 415 555 0142", "+14155550142"),
    ("+1 415 555 0142", "001 415 555 0142"),
    ("+1 415 555 0142", "1-415-555-0142"),
    ("+1 415 555 0142", "٤١٥ ٥٥٥ ٠١٤٢"),
    ("+1 415 555 0142", "４１５－５５５－０１４２"),
    ("(415) 555-0142", "+1 415 555 0142"),
    ("4155550142", "415\u00a0555\u201101\u200b42"),
    ("001 415 555 0142", "415 555 0142"),
    ("tel:+14155550142", "(415)555-0142"),
    ("+49 30 1234567", "030 1234567"),
    ("+49 30 1234567", "+49 (0)30 1234567"),
    ("+1-555-0100", "+1-555-0100"),
    ("alice@acme.io", "ALICE@ACME.IO"),
    ("alice@acme.io", "alice at acme dot io"),
    ("alice@acme.io", "alice [at] acme [dot] io"),
    ("alice@acme.io", '"alice"@acme.io'),
    ("Alice at Acme dot io", "alice@acme.io"),
    ("4111 1111 1111 1111", "4111-1111-1111-1111"),
    ("4111111111111111", "4111 1111 1111 1111"),
    ("DE89 3704 0044 0532 0130 00", "de89370400440532013000"),
    ("1990-03-14", "14/03/1990"),
    ("1990-03-14", "3/14/1990"),
    ("1990-03-14", "14.3.90"),
    ("1990-03-14", "March 14, 1990"),
    ("1990-03-14", "14 March 1990"),
    ("1990-03-14", "14th of March 1990"),
    ("1990-03-14", "14. März 1990"),
    ("1990-03-14", "14 de marzo de 1990"),
    ("1990-03-14", "14 mars 1990"),
    ("1990-03-14", "14 marzo 1990"),
    ("1990-03-14", "14 de março de 1990"),
    ("1990-03-14", "14 maart 1990"),
    ("1990-03-14", "19900314"),
    ("1990-03-14", "1990年3月14日"),
    ("March 14th, 1990", "1990-03-14"),
    ("https://www.acme.io/vendor", "acme.io/vendor"),
    ("acme.io/vendor", "HTTP://ACME.IO/vendor/"),
    ("https://acme.io/a%20b", "acme.io/a%20b"),
    ("192.168.1.5", "192.168.001.005"),
    ("2001:db8::1", "2001:0DB8:0:0:0:0:0:1"),
    ("14:30", "14:30"),
    ("P@ssw0rd!", "P@ssw0rd!"),
    ("Dr Smith", "Dr. Smith"),
    ("KX-4471", "kx4471"),
    ("KX4471", "KX-4471"),
    ("XK7L-9P3Q-2RVA-8M1N", "XK7L.9P3Q.2RVA.8M1N"),
    ("550e8400-e29b-41d4-a716-446655440000", "550e8400e29b41d4a716446655440000"),
    ("1HGCM82633A004352", "1HGCM-82633-A004352"),
    ("978-0-13-468599-1", "9780134685991"),
    ("123456789", "123-45-6789"),
    ("847", "0000847"),
    ("5000", "5,000"),
    ("@acme-engineer", "acme-engineer"),
    ("FF7A00", "FF7A00"),
    ("ACME-CORP", "acme_corp"),
    ("Nova Edge", "NOVA-EDGE"),
    ("Paris", "PARIS"),
    ("Paris", "Раris"),
    ("Paris", "ＰＡＲＩＳ"),
    ("Paris", "P\u00ada\u200bris"),
    ("José García", "Jose\u0301 Garci\u0301a"),
    ("Grossmann", "Großmann"),
    ("Nguyen Van Hung", "Nguyễn Văn Hùng"),
    ("O'Neil", "O’Neil"),
    ("I live in Paris", "i live  in\nParis"),
    ("北京", "北京"),
    ("C++", "c++"),
    ("🚀", "🚀"),
]

DIFFERENT = [
    ("+1 415 555 0142", "+44 415 555 0142"),
    ("+1 415 555 0142", "415-555-01425"),
    ("+1-555-0100", "+1-555-01000"),
    ("alice@acme.io", "alice@acme.io.uk"),
    ("alice@acme.io", "alice.smith@acme.io"),
    ("alice@acme.io", "x.alice@acme.io"),
    ("alice@acme.io", "alice+promo@acme.io"),
    ("mycompany.com", "mycompany.com.br"),
    ("acme.io/vendor", "acme.io/vendors"),
    ("192.168.1.5", "192.168.1.50"),
    ("4417", "1644170"),
    ("4417", "4417.50"),
    ("4417", "4111 4417 1111 1111"),
    ("2024", "2024-03-14"),
    ("12345", "123456"),
    ("TKT-100", "TKT-1000"),
    ("abc1234", "abc12345"),
    ("order_2024_001", "order_2024_0010"),
    ("project_2024", "project_2024_v2"),
    ("/etc/app/conf", "/etc/app/conf.bak"),
    ("admin", "admin1"),
    ("cat", "concatenate"),
    ("John", "Johnson"),
    ("John", "Johnny"),
    ("John", "John-Paul"),
    ("John Smith", "John Smithson"),
    ("engineering", "engineering-platform"),
    ("Neil", "O'Neil"),
    ("C", "C++"),
    ("राज", "राजा"),
    ("水", "水曜日"),
    ("ก", "ก็"),
    ("in form", "inform"),
    ("New York", "New. York"),
    ("1990-03-14", "1990-03-15"),
    ("1990-03-14", "11990-03-14"),
    ("DEUTDEFF", "deutdeffish"),
]

WIDENED = [
    ("555-0142", "(415) 555-0142"),
    ("0142", "(415) 555-0142"),
    ("acme.io", "alice@acme.io"),
    ("acme.io", "https://api.acme.io/v2/events"),
    ("1111", "4111 1111 1111 1111"),
    ("3000", "DE89 3704 0044 0532 01 3000"),
    ("raven42", "raven42#secure"),
    ("kappa7", "kappa7-2025-08"),
    ("ATLAS-2024", "PRJ-ATLAS-2024"),
    ("00921", "ORD-2026-00921"),
    ("1234", "1234-USD"),
    ("4242", "**** 4242"),
    ("DEUTDEFF", "DEUTDEFFXXX"),
    ("+1 415 555 0142", "415-555-0142 ext 24"),
    ("john", "john@acme.io"),
    ("0184", "510-555-0184 extension 12"),
    ("extension 12", "510-555-0184 extension 12"),
    ("555-0184", "510-555-0184 ext. 12"),
    ("$1,234.56", "1234.56 USD"),
    ("415-555-0142", "Tel4155550142"),
    ("415-555-0142", "id_4155550142_x"),
    ("415-555-0142", "https://wa.me/14155550142"),
    ("4417", "https://a.io/4417/edit"),
    ("192.168.1.5", "http://192.168.1.5:8080/x"),
    ("abc1234", "abc1234f00d5678901234567890123456789abcd"),
]


@pytest.mark.parametrize(("wanted", "written"), SAME)
def test_a_value_is_found_in_another_spelling_at_its_exact_place(wanted: str, written: str) -> None:
    text = f"Note: {written}, that is all."
    spans = find(needle(wanted), text)
    assert [text[span.start : span.end] for span in spans] == [written]
    assert not spans[0].widened
    assert not contains(needle(wanted), redact(text, spans))


@pytest.mark.parametrize(("wanted", "other"), DIFFERENT)
def test_a_look_alike_is_not_found(wanted: str, other: str) -> None:
    assert find(needle(wanted), f"Note: {other} is something else.") == []
    assert not contains(needle(wanted), f"Note: {other} is something else.")


@pytest.mark.parametrize(("wanted", "whole"), WIDENED)
def test_a_part_takes_the_whole_value_along(wanted: str, whole: str) -> None:
    text = f"Note: {whole}, that is all."
    spans = find(needle(wanted), text)
    assert [text[span.start : span.end] for span in spans] == [whole]
    assert spans[0].widened
    assert redact(text, spans) == "Note: [redacted], that is all."


@pytest.mark.parametrize(
    "blank", ["", " ", "\u200b", "*", "%", "?!", "...", "_", "\x00", "\ud800", "^$"]
)
def test_a_needle_of_nothing_is_refused(blank: str) -> None:
    with pytest.raises(SelectorError):
        needle(blank)


@pytest.mark.parametrize("kind", ["colour", "card"])
def test_a_value_that_is_not_of_the_asked_kind_is_refused(kind: str) -> None:
    with pytest.raises(SelectorError):
        needle("4111 1111 1111 1112", kind=kind)


def test_day_and_month_are_matched_both_ways_and_the_doubt_is_told() -> None:
    for text in ("4/3/1990", "3/4/1990", "04.03.1990"):
        assert [span.exact for span in find(needle("1990-03-04"), text)] == [False]
    assert [span.exact for span in find(needle("1990-03-14"), "3/14/1990")] == [True]


def test_an_accent_or_a_letter_of_another_script_is_a_doubt() -> None:
    assert [span.exact for span in find(needle("José"), "Jose and José")] == [False, True]
    assert [span.exact for span in find(needle("Paris"), "Раris and Paris")] == [False, True]


def test_a_number_without_country_also_matches_one_with_any_country() -> None:
    spans = find(needle("(415) 555-0142"), "call +44 415 555 0142 now")
    assert [(span.start, span.end, span.exact) for span in spans] == [(5, 21, False)]


def test_a_word_is_found_beside_punctuation_and_possessives() -> None:
    text = "Paris's #Paris, PARIS. (Paris) l'Paris Paris-based ex-Paris Paris–Lyon _Paris_ Paris"
    assert len(find(needle("Paris"), text)) == 10


def test_quick_agrees_with_find_on_every_listed_pair() -> None:
    for wanted, text in SAME + DIFFERENT + WIDENED:
        assert quick(needle(wanted))(text) == bool(find(needle(wanted), text))


def test_every_kind_of_value_in_a_text_is_recognised() -> None:
    text = (
        "call (415) 555-0142 or alice@acme.io, card 4111 1111 1111 1111 on 2024-03-14; KX-4471, "
        "$5,000 and 123-45-6789 https://a.b.com/x?y=1). DE89 3704 0044 0532 0130 00 at 10.0.0.1"
    )
    found = [(value.kind, text[value.start : value.end]) for value in recognise(text)]
    assert found == [
        ("phone", "(415) 555-0142"),
        ("email", "alice@acme.io"),
        ("card", "4111 1111 1111 1111"),
        ("date", "2024-03-14"),
        ("code", "KX-4471"),
        ("money", "$5,000"),
        ("number", "123-45-6789"),
        ("url", "https://a.b.com/x?y=1"),
        ("iban", "DE89 3704 0044 0532 0130 00"),
        ("ip", "10.0.0.1"),
    ]


@pytest.mark.parametrize("sign", list("-#.:/+=~@&$!*%^|\\"))
def test_a_code_with_any_sign_inside_finds_itself(sign):
    for value in (f"ab{sign}12", f"0{sign}u0000", f"pa{sign}{sign}w0rd1"):
        wanted = needle(value)
        found = find(wanted, f"it is {value}, keep it")
        assert [(one.start, one.end) for one in found] == [(6, 6 + len(value))]
        assert not contains(wanted, redact(f"it is {value}, keep it", found))


def test_no_value_stays_in_the_process_when_it_was_forgotten_or_looked_for(memory: Memory) -> None:
    value = "heliotrope" + "-" + "4711"
    memory.remember(f"The code is {value}.")
    memory.forget(memory.plan(value=value))
    assert memory.scan(value, files=False).clean
    gc.collect()
    needles = [one for one in gc.get_objects() if isinstance(one, Needle)]
    assert [one for one in needles if "heliotrope" in one.original] == []
    kept = [*vars(re)["_cache"], *vars(regex)["_main"]._cache]
    assert [one for one in kept if re.search(r"h[^a-z]+e[^a-z]+l[^a-z]+i", str(one))] == []
