"""What language a text is in, by header or by looks."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawl.html.language import SAMPLE, detect, of_header

TEXTS = {
    "en": "The harbour master wrote down every ship that left before dawn, and nobody asked him why.",
    "de": "Der Hafenmeister schrieb jedes Schiff auf, das vor Sonnenaufgang auslief, niemand fragte warum.",
    "fr": "Le maître du port notait chaque navire parti avant l'aube, personne ne lui demandait pourquoi.",
    "es": "El capitán del puerto apuntaba todo barco que salía antes del amanecer, nadie preguntaba por qué.",
    "pl": "Kapitan portu zapisywał każdy statek, który wypływał przed świtem, i nikt go nie pytał dlaczego.",
    "ru": "Начальник порта записывал каждое судно, уходившее до рассвета, и никто не спрашивал его почему.",
    "el": "Ο λιμενάρχης έγραφε κάθε πλοίο που έφευγε πριν από την αυγή και κανείς δεν τον ρωτούσε γιατί.",
    "he": "מנהל הנמל רשם כל ספינה שיצאה לפני הזריחה, ואיש לא שאל אותו מדוע.",
    "ar": "كان رئيس الميناء يكتب اسم كل سفينة تغادر قبل الفجر ولم يسأله أحد عن السبب.",
    "ja": "港の責任者は夜明け前に出て行く船をすべて書き留めていたが、誰もその理由を尋ねなかった。",
    "zh": "港口的主管把天亮以前离开的每一条船都记了下来，没有人问他为什么。",
    "ko": "항구 책임자는 새벽이 오기 전에 떠나는 배를 모두 적어 두었지만 아무도 이유를 묻지 않았다.",
}


@pytest.mark.parametrize("language", TEXTS)
def test_a_sentence_is_enough(language: str) -> None:
    assert detect(TEXTS[language]) == language


@pytest.mark.parametrize("text", ["", "x", "404 Not Found", "12 345 678", "{};()", "\0\x01\x7f"])
def test_what_does_not_tell_gives_none(text: str) -> None:
    assert detect(text) is None


def test_control_characters_and_halves_of_characters_do_not_hide_a_language() -> None:
    assert detect("\x01\ud800 " + TEXTS["en"] + "\x85") == "en"


def test_only_the_beginning_counts() -> None:
    head = (TEXTS["de"] + " ") * 30
    assert len(head) > SAMPLE
    assert detect(head + TEXTS["ru"] * 1_000) == "de"


def test_a_header_that_names_several_languages_tells_whom_a_page_is_for() -> None:
    assert of_header(["pt_br"]) == "pt-br"
    assert of_header(["de, en"]) is None
    assert of_header(["de", "en"]) is None
    assert of_header([]) is None
    assert of_header(["{{ lang }}"]) is None


@settings(max_examples=100)
@given(st.text(max_size=120))
def test_any_text_gives_the_same_answer_twice(text: str) -> None:
    found = detect(text)
    assert found == detect(text)
    assert found is None or 2 <= len(found) <= 12
