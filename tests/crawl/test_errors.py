"""The error tree: one root, exit codes as the commands promise them, everything pickles."""

import pickle

import pytest

from crawl import errors

LEAVES = [getattr(errors, name) for name in errors.__all__]


@pytest.mark.parametrize("kind", LEAVES)
def test_an_error_survives_the_way_to_another_process(kind: type[errors.CrawlError]) -> None:
    error = pickle.loads(pickle.dumps(kind("a reason", "a detail")))
    assert (type(error), error.args) == (kind, ("a reason", "a detail"))


def test_every_error_of_the_module_hangs_on_one_root_and_is_public() -> None:
    found = {name for name, value in vars(errors).items() if isinstance(value, type)}
    assert found == set(errors.__all__)
    assert [kind for kind in LEAVES if not issubclass(kind, errors.CrawlError)] == []


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (errors.CheckFailed, 1),
        (errors.CrawlError, 1),
        (errors.UsageError, 2),
        (errors.SettingsError, 2),
        (errors.LakeBusy, 3),
        (errors.FenceLost, 3),
        (errors.LakeError, 4),
        (errors.NoSuchLake, 4),
        (errors.NewerFormat, 4),
        (errors.Conflict, 4),
        (errors.ClusterError, 5),
        (errors.SafetyStop, 6),
    ],
)
def test_the_command_line_ends_with_the_code_of_its_error(kind: type[errors.CrawlError], code: int) -> None:
    assert kind("why").exit_code == code


def test_a_url_error_is_a_value_error_that_names_its_reason() -> None:
    error = errors.UrlError("url_scheme", "ftp://a.test/")
    assert isinstance(error, ValueError)
    assert error.reason == "url_scheme"
    assert errors.UrlError().reason == "url_invalid"
