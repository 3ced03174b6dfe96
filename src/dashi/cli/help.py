"""How help looks: options in named groups, plain usage lines, summaries that are whole.

typer draws groups with rich alone, which takes longer to import than everything else together; here they are plain.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from dashi.cli.flags import renamed_flags, speaking_of_flags, with_usual_values

if TYPE_CHECKING:
    from typer._click import Context, HelpFormatter, Parameter

FLOW: Final = "The flow"
START: Final = "Where it starts"
OPERATOR: Final = "What runs"
DATA: Final = "Data"
MODEL: Final = "The model"
RULES: Final = "What becomes of atoms"
RUN: Final = "How far, and what is looked at"
DECODE: Final = "Decoded fields"
OUTPUT: Final = "What is written"
DEVICE: Final = "Where it runs"
PARTS: Final = "In parts"
COMPAT: Final = "The numbers of an earlier code"
_REST: Final = "Options"
_FEW: Final = 10
"""So many options are one list."""


class Command(TyperCommand):
    """A command whose options are listed by group, and whose errors speak of them."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Reads what was typed; flags that were renamed mean what they are called now, and some may stand alone."""
        flags = {flag for parameter in self.params for flag in parameter.opts}
        return super().parse_args(ctx, with_usual_values(renamed_flags(args, flags), flags))

    def invoke(self, ctx: Context) -> Any:
        with speaking_of_flags(self.params):
            return super().invoke(ctx)

    def collect_usage_pieces(self, ctx: Context) -> list[str]:
        """`[OPTIONS] CERTIFICATE`, `[OPTIONS] [NAME...]`."""
        arguments = [one for one in self.get_params(ctx) if one.param_type_name == "argument"]
        names = [_argument_name(one) for one in arguments]
        pieces = [name if one.required else f"[{name}]" for one, name in zip(arguments, names, strict=True)]
        return [*([self.options_metavar] if self.options_metavar else []), *pieces]

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        """A section for the arguments, one for each group of options, and one for the rest."""
        sections: dict[str, list[tuple[str, str]]] = {}
        parameters = self.get_params(ctx)
        grouped = sum(parameter.param_type_name == "option" for parameter in parameters) > _FEW
        for parameter in parameters:
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            if parameter.param_type_name == "argument":
                sections.setdefault("Arguments", []).append((_argument_name(parameter), record[1]))
            else:
                group: str | None = getattr(parameter, "rich_help_panel", None) if grouped else None
                sections.setdefault(group or _REST, []).append(record)
        last = sections.pop(_REST, [])
        for title, records in [*sections.items(), (_REST, last)]:
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


class Group(TyperGroup):
    """A group whose commands are listed with summaries that wrap, and are not cut."""

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        """A line or two for each command."""
        named = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        records = [(name, one.get_short_help_str(limit=200)) for name, one in named if one and not one.hidden]
        if records:
            with formatter.section("Commands"):
                formatter.write_dl(records)


class App(typer.Typer):
    """A noun and its verbs."""

    def __init__(self, name: str, text: str | None = None, **more: Any) -> None:
        words: dict[str, Any] = {"cls": Group, **more}
        if text is not None:  # otherwise it is that of the callback
            words["help"] = text
        super().__init__(name=name, no_args_is_help=True, **words)

    def command(self, *names: Any, **more: Any) -> Callable[[Any], Any]:
        """Adds a command, whose help has groups."""
        return super().command(*names, **{"cls": Command, **more})


def _argument_name(one: Parameter) -> str:
    name = str(getattr(one, "metavar", None) or one.name or "").upper()
    return f"{name}..." if one.nargs != 1 and not name.endswith("...") else name
