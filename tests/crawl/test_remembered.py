"""What is remembered of strangers' texts is short."""

from crawl.remembered import LONGEST, remembered


def test_short_texts_are_worked_out_once_and_long_ones_each_time() -> None:
    asked: list[str] = []

    @remembered(10)
    def shout(prefix: str, text: str) -> str:
        asked.append(text)
        return prefix + text.upper()

    for text in ("a", "a", "b" * LONGEST, "b" * LONGEST, "c" * (LONGEST + 1), "c" * (LONGEST + 1)):
        assert shout(">", text) == ">" + text.upper()
    assert [len(text) for text in asked] == [1, LONGEST, LONGEST + 1, LONGEST + 1]
    assert shout.__name__ == "shout"
