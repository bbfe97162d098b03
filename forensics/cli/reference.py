"""The commands that read no log: `schema`, `rules`, `explain`, `config`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from forensics.cli.options import AsColor, AsFormat, Color, Format, Output
from forensics.cli.program import app, guarded, unknown_rule
from forensics.cli.site import site


class SchemaOf(StrEnum):
    """The documents that are published."""

    analyze = "analyze"
    events = "events"
    reproduction = "reproduction"
    probe = "probe"


@app.command()
@guarded
def schema(
    document: Annotated[
        SchemaOf,
        typer.Argument(help="What `analyze` prints, a row of `events`, a verdict, a probe."),
    ] = SchemaOf.analyze,
    events: Annotated[bool, typer.Option("--events", help="Short for `events`.")] = False,
    output: Output = None,
) -> None:
    """Print the JSON Schema of the `analyze` document, an event, `reproduction.json` or a probe."""
    import json

    from forensics.views.output import destination

    if document is SchemaOf.reproduction and not events:
        from forensics.views.reproduce.json import reproduction_schema as made
    elif document is SchemaOf.probe and not events:
        from forensics.views.probe import probe_schema as made
    elif document is SchemaOf.events or events:
        from forensics.views.schema import events_schema as made
    else:
        from forensics.views.schema import json_schema as made
    data = made()
    with destination(output) as out:
        out.write(json.dumps(data, indent=2) + "\n")


@app.command()
@guarded
def rules(
    context: typer.Context, format: AsFormat = Format.text, color: AsColor = Color.auto
) -> None:
    """List the rules: what each finds and what it needs."""
    from forensics.rules import registry
    from forensics.views.catalogue import rules_json, show_rules
    from forensics.views.console import console_for
    from forensics.views.output import destination

    with destination(None) as out:
        if format is Format.json:
            out.write(rules_json(registry()))
        else:
            show_rules(registry(), console_for(out, site(context)["color"]))


@app.command()
@guarded
def explain(
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="RULE", help="A rule, as `rules` lists them, or a playbook.")
    ],
    color: AsColor = Color.auto,
) -> None:
    """Show a rule's playbook: what it means, how to confirm it, how to fix it."""
    from forensics.resources import playbook, playbook_names
    from forensics.rules import registry
    from forensics.views.catalogue import show_playbook, show_rules
    from forensics.views.console import console_for
    from forensics.views.output import destination

    found = {known.id: known for known in registry()}
    rule = found.get(name)
    text = playbook(rule.playbook, rule.package) if rule else playbook(name)
    if rule is None and text is None:
        raise typer.BadParameter(unknown_rule(name, [*found, *playbook_names()]))
    with destination(None) as out:
        console = console_for(out, site(context)["color"])
        if text is not None:
            show_playbook(text, console)
        elif rule is not None:
            show_rules([rule], console)


@app.command()
@guarded
def config(
    context: typer.Context, format: AsFormat = Format.text, color: AsColor = Color.auto
) -> None:
    """Show the settings in force and where each was set, as a file to copy from."""
    from forensics.rules import declared
    from forensics.settings import with_thresholds
    from forensics.views.console import console_for
    from forensics.views.output import destination
    from forensics.views.settings import settings_json, show_settings

    found = with_thresholds(site(context))
    with destination(None) as out:
        if format is Format.json:
            out.write(settings_json(found))
        else:
            show_settings(found, declared(), console_for(out, found["color"]))
