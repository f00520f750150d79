"""The program: its commands and their help, and how what is typed is read."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from inspect import Parameter, Signature
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from coincide.command_line import help_texts, options
from coincide.command_line.flags import as_one, takes_twos

_BOUND = re.compile(r"[+-]?\.?\d|none$|\s*$", re.IGNORECASE)
"""How a bound of a window begins; an empty one is an error of its own."""
_TRUTHS = ("true", "false", "yes", "no")
_SHARES = ("--confidence", "--confidences")
"""Options whose numbers may be percentages."""
_HOMES = {"coincidence": "sequence"}
"""Modules of commands that are not called like these."""


class _Plain:
    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for each in params:
            if getattr(each, "is_flag", False):
                each.metavar = ""
        return params


class Group(_Plain, TyperGroup):
    """The program."""


class Command(_Plain, TyperCommand):
    """One command of the program."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse what was typed."""
        options = [each for each in self.get_params(ctx) if each.param_type_name == "option"]
        words = list(_spelled_out(args, options))
        _check_once(words)
        return super().parse_args(ctx, words)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; messages name its options meanwhile."""
        from coincide.command_line.problems import RUNNING

        before = RUNNING.set(ctx.info_name or "")
        try:
            return super().invoke(ctx)
        finally:
            RUNNING.reset(before)


def _spelled_out(args: Sequence[str], options: Sequence[Any]) -> Iterator[str]:
    """The words, with both ends of a window of one duration, numbers for percentages, a folder for none."""
    by_name = {name: option for option in options for name in option.opts}
    words = list(args)
    while words:
        word = words.pop(0)
        if word == "--":
            yield from (word, *words)
            return
        name, sign, value = word.partition("=")
        option = by_name.get(name)
        if option is not None and (option.nargs == 2 or takes_twos(option)):
            words[:0] = [value] if sign else []
            two = _two(name, option.metavar, words, by_name)
            yield from (name, *([as_one(two)] if takes_twos(option) else two))
            continue
        if option is not None and option.is_flag:
            _check_alone(name, value if sign else next(iter(words), ""), bool(sign))
        if option is not None and str(option.metavar).startswith("["):
            is_given = sign or (words and not words[0].startswith("-"))
            yield from (name, value if sign else words.pop(0) if is_given else ".")
            continue
        if option is not None and name in _SHARES and (sign or words):
            yield from (name, _numbers(value if sign else words.pop(0)))
            continue
        yield word


def _check_once(words: Sequence[str]) -> None:
    """Refuse two conditions on pairs; of other options the last one counts, as in most programs."""
    times = sum(word.partition("=")[0] == "--where" for word in words)
    if times > 1:
        raise _problem(f"--where is one condition (found {times}). Join them by AND, or by OR.")


def _numbers(text: str) -> str:
    """Numbers, separated by commas; some may be percentages."""
    if "%" not in text:
        return text
    from coincide.model.condition import of_percent

    return ",".join(str(of_percent(each)) for each in text.split(","))


def _check_alone(flag: str, value: str, is_meant: bool) -> None:
    if is_meant or value.lower() in _TRUTHS:
        raise _problem(
            f"{flag} takes no value (found {value!r}). Write {flag} alone, or remove it."
        )


def _two(name: str, called: str, words: list[str], by_name: dict[str, Any]) -> tuple[str, str]:
    """Take the two values of an option from the words that follow it; of one duration -D and D."""
    found = words[:2]
    for i, word in enumerate(found):
        if word.startswith("--") or word in by_name:
            del found[i:]
            break
    if len(found) == 2 and (name != "--within" or _BOUND.match(found[1])):
        del words[:2]
        return found[0], found[1]
    if not found or name != "--within":
        instead = repr(found[0]) if found else "none"
        if name == "--within":
            raise _problem(f"{name} takes one duration or two (found {instead}). Write one or two.")
        raise _problem(f"{name} takes two values, {called} (found {instead}). Write both.")
    from coincide.engine.join.text_options import both_ends

    return both_ends(words.pop(0))


def _problem(text: str) -> Exception:
    from coincide.command_line.problems import Problem

    return Problem(text)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            typer.echo(f"coincide {version('coincide')}")
        except PackageNotFoundError:
            typer.echo("coincide runs from its sources, and is not installed")
        raise typer.Exit


def _coincide(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options of the program itself."""


def _add(
    app: typer.Typer, name: str, parameters: Sequence[Parameter], help: str, examples: str = ""
) -> None:
    """A command of the program; the module of its name, or its home, does the work."""

    def run(**words: Any) -> None:
        _answer(name, words)

    run.__name__ = name
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    app.command(name, cls=Command, help=help, epilog=examples and examples + help_texts.EXIT_CODES)(
        run
    )


def _answer(name: str, words: dict[str, Any]) -> None:
    """Do what was typed, and tell of it."""
    module = import_module(f"coincide.command_line.{_HOMES.get(name, name)}")
    if name in ("demo", "doctor"):
        raise typer.Exit(module.run(**words) or 0)
    from coincide.command_line.engines import run
    from coincide.command_line.outputs import ReaderGone
    from coincide.command_line.problems import cannot_print
    from coincide.command_line.summary import print_summary

    as_json = words.pop("as_json")
    # Standard output is for the rows then.
    to = sys.stderr if words["output"] == "-" else sys.stdout
    request = module.request(**words)
    done = module.run(request) if name in ("explore", "stream") else run(request)
    try:
        print_summary(done, as_json, to)
        to.flush()
    except BrokenPipeError:
        raise ReaderGone from None
    except OSError as error:
        raise cannot_print(
            "the summary", error, f" The output, {done.output}, is written."
        ) from error


_COMMANDS: dict[str, tuple[Any, ...]] = {
    "join": (options.JOIN, help_texts.JOIN_HELP, help_texts.JOIN_EXAMPLES),
    "stream": (options.STREAM, help_texts.STREAM_HELP, help_texts.STREAM_EXAMPLES),
    "explore": (options.EXPLORE, help_texts.EXPLORE_HELP, help_texts.EXPLORE_EXAMPLES),
    "histogram": (
        options.HISTOGRAM,
        help_texts.HISTOGRAM_HELP,
        help_texts.HISTOGRAM_EXAMPLES,
    ),
    "clocks": (options.CLOCKS, help_texts.CLOCKS_HELP, help_texts.CLOCKS_EXAMPLES),
    "borders": (options.BORDERS, help_texts.BORDERS_HELP, help_texts.BORDERS_EXAMPLES),
    "causality": (options.CAUSALITY, help_texts.CAUSALITY_HELP, help_texts.CAUSALITY_EXAMPLES),
    "clusters": (options.CLUSTERS, help_texts.CLUSTERS_HELP, help_texts.CLUSTERS_EXAMPLES),
    "transitions": (
        options.TRANSITIONS,
        help_texts.TRANSITIONS_HELP,
        help_texts.TRANSITIONS_EXAMPLES,
    ),
    "sequence": (options.SEQUENCE, help_texts.SEQUENCE_HELP, help_texts.SEQUENCE_EXAMPLES),
    "coincidence": (
        options.COINCIDENCE,
        help_texts.COINCIDENCE_HELP,
        help_texts.COINCIDENCE_EXAMPLES,
    ),
    "demo": (options.DEMO, help_texts.DEMO_HELP),
    "doctor": (options.DOCTOR, help_texts.DOCTOR_HELP),
}


def program(words: Sequence[str] = ()) -> typer.Typer:
    """The program; where `words` begin with a command, with that one alone, which is made sooner."""
    app = typer.Typer(
        name="coincide",
        cls=Group,
        add_completion=False,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        help="Join event streams whose timestamps are uncertain.\n\n"
        "A pair of events qualifies when the [b]probability[/b] that it meets a timing condition,"
        ' such as "within 250 ms of each other", reaches a confidence threshold.',
        epilog="Start with [b]coincide demo[/b], then [b]coincide join --help[/b]."
        " If something is missing, [b]coincide doctor[/b] says what to do.",
    )
    app.callback()(_coincide)
    for name in {*_COMMANDS}.intersection(words[:1]) or _COMMANDS:
        _add(app, name, *_COMMANDS[name])
    return app
