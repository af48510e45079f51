from __future__ import annotations

import pytest

from app.errors import UnexpectedError, details_of
from app.fault_report import fault_report, short_path

SECRET = "the patient's name"


def fail(text: str) -> None:
    raise ValueError(f"cannot read {text!r}")


def fault() -> Exception:
    try:
        try:
            fail(SECRET)
        except ValueError as error:
            raise KeyError(SECRET) from error
    except KeyError as error:
        return error


def test_a_report_says_where_and_nothing_that_was_written() -> None:
    error = fault()
    assert SECRET in "".join(map(str, (error, error.__cause__)))  # what must not get out
    report = fault_report(error)
    assert SECRET not in report
    assert "tests/app/test_fault_report.py:" in report
    assert "in fail" in report
    assert report.index("ValueError") < report.index("which led to:") < report.index("KeyError")
    assert SECRET not in details_of(UnexpectedError("The answer", error))


def test_messages_that_speak_of_the_program_alone_are_told() -> None:
    with pytest.raises(AttributeError) as caught:
        _ = None.nothing  # type: ignore[attr-defined]
    assert "'NoneType' object has no attribute 'nothing'" in fault_report(caught.value)


def test_an_error_of_the_system_is_told_without_the_files_name() -> None:
    report = fault_report(FileNotFoundError(2, "No such file", "/home/anna/secret.txt"))
    assert "FileNotFoundError: error 2" in report
    assert "anna" not in report
    report = fault_report(ImportError("cannot open /home/anna/libx.so", name="torch._C"))
    assert "ImportError: torch._C" in report
    assert "anna" not in report


def test_a_fault_that_repeats_itself_is_told_briefly() -> None:
    def deeper() -> None:
        deeper()

    with pytest.raises(RecursionError) as caught:
        deeper()
    assert len(fault_report(caught.value).splitlines()) < 100


def test_folders_with_a_users_name_are_left_out() -> None:
    assert short_path(__file__) == "tests/app/test_fault_report.py"
    assert short_path("app/chat/view.py") == "app/chat/view.py"
    assert short_path("/home/anna/app/lib/python3.11/site-packages/torch/nn.py") == "torch/nn.py"
    assert short_path("/home/anna/script.py") == "script.py"
