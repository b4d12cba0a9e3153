"""Made-up text in several languages: real function words among invented ones.

What always holds: the text of a key never changes; words hold no character that HTML must escape; German and
French stay inside ISO-8859-1. It is no language model: the text means nothing, and pages share words but
hardly any phrase.
"""

from __future__ import annotations

from functools import cache

from tests.web.dice import Dice

__all__ = ["LANGUAGES", "paragraph", "phrase"]

_STOP = {
    "en": "the of and to in is that for it as was with be by on not he his but at are this have from or had",
    "de": "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch es an",
    "fr": "de la le et les des en un du une que est pour qui dans par plus pas au sur ne se été à même",
    "ru": "и в не на я быть он с что а по это она этот к но они мы весь который из у то за свой ее год",
}
_START = {
    "en": "b br c ch cl d dr f fl g gr h j k l m n p pl qu r s sh st t th tr v w wh",
    "de": "b bl d dr f fl g gr h k kl kn l m n pf r s sch schw sp st t tr v w z zw",
    "fr": "b bl c ch cl d f fl g gr j l m n p pl qu r s t tr v",
    "ru": "б бр в г гр д ж з к кр л м н п пр р с ст т тр ф х ц ч ш",
}
_MIDDLE = {
    "en": "a e i o u ea oo ai ou",
    "de": "a e i o u ä ö ü ei au ie",
    "fr": "a e i o u é è ê ou ai eu oi",
    "ru": "а е и о у ы я ю",
}
_END = {
    "en": "n r s t l d m ck ng rd nt se le ry tion",
    "de": "n r s t l cht ng rn nd ß ung heit lich",
    "fr": "n r s t l nt que re ment tion eau ç",
    "ru": "н р с т л м к й ть ский ние ост",
}
LANGUAGES = tuple(_STOP)
_TABLE = 4096  # entries of the table a word is drawn from; frequent words stand in it more than once


@cache
def _table(language: str) -> tuple[str, ...]:
    """The words of a language, each as often as its rank deserves (Zipf), 4,096 entries."""
    dice = Dice("words", language)
    starts, middles, ends = (part[language].split() for part in (_START, _MIDDLE, _END))
    ranked = dict.fromkeys(_STOP[language].split())
    while len(ranked) < 1800:
        word = dice.pick(starts) + dice.pick(middles)
        if dice.chance(0.7):
            word += dice.pick(starts) + dice.pick(middles)
        ranked[word + dice.pick(ends)] = None
    table: list[str] = []
    for rank, word in enumerate(ranked):
        table += [word] * max(1, round(_TABLE * 0.11 / (rank + 2)))
    while len(table) < _TABLE:
        table.append(table[dice.below(len(table))])
    return tuple(table)


def phrase(language: str, words: int, *key: object) -> str:
    """A short run of invented words (no function words, so that titles are telling), first letter capital."""
    table, dice, chosen = _table(language), Dice("phrase", *key), list[str]()
    while len(chosen) < words:
        word = dice.pick(table)
        if len(word) > 3:
            chosen.append(word)
    return " ".join(chosen).capitalize()


def paragraph(language: str, words: int, *key: object) -> str:
    """`words` words in sentences of 7 to 18."""
    table, dice = _table(language), Dice("paragraph", *key)
    roll = dice.random
    drawn = [table[int(roll() * _TABLE)] for _ in range(words)]
    sentences, at = [], 0
    while at < words:
        end = min(words, at + 7 + int(roll() * 12))
        sentence = " ".join(drawn[at:end])
        sentences.append(sentence[0].upper() + sentence[1:] + ".")
        at = end
    return " ".join(sentences)
