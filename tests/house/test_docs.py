"""Code in the documentation that shows its output prints just that."""

from __future__ import annotations

import re

import pytest

from tests.helpers.places import ROOT

EXAMPLE = re.compile(r"```python\n((?:(?!```).)*)```\n\n```text\n((?:(?!```).)*)```", re.DOTALL)


@pytest.mark.parametrize(
    "page",
    [
        f"docs/{name}.md"
        for name in (
            *(
                "borders",
                "causality",
                "gpu-cluster",
                "histograms",
                "meaning",
                "pipeline",
                "streams",
                "transitions",
            ),
            "windowed-causality",
        )
    ],
)
def test_examples_print_what_the_page_says(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    examples = EXAMPLE.findall((ROOT / page).read_text(encoding="utf-8"))
    assert examples
    for code, output in examples:
        exec(compile(code, page, "exec"), {})
        assert capsys.readouterr().out == output
