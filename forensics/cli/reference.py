"""The commands that read no log: `schema`, `rules`, `explain`."""

from __future__ import annotations

from typing import Annotated

import typer

from forensics.cli.options import AsColor, AsFormat, Color, Format, Output
from forensics.cli.program import app, guarded, unknown_rule


@app.command()
@guarded
def schema(
    events: Annotated[bool, typer.Option("--events", help="The schema of `events` rows.")] = False,
    output: Output = None,
) -> None:
    """Print the JSON Schema of the `analyze` document."""
    import json

    from forensics.views.output import destination
    from forensics.views.schema import events_schema, json_schema

    data = events_schema() if events else json_schema()
    with destination(output) as out:
        out.write(json.dumps(data, indent=2) + "\n")


@app.command()
@guarded
def rules(format: AsFormat = Format.text, color: AsColor = Color.auto) -> None:
    """List the rules: what each finds and what it needs."""
    from forensics.rules import registry
    from forensics.views.catalogue import rules_json, show_rules
    from forensics.views.console import console_for
    from forensics.views.output import destination

    with destination(None) as out:
        if format is Format.json:
            out.write(rules_json(registry()))
        else:
            show_rules(registry(), console_for(out, color.value))


@app.command()
@guarded
def explain(
    rule: Annotated[
        str, typer.Argument(metavar="RULE", help="A rule's id, as `rules` lists them.")
    ],
    color: AsColor = Color.auto,
) -> None:
    """Show a rule's playbook: what it means, how to confirm it, how to fix it."""
    from forensics.resources import playbook_dir
    from forensics.rules import registry
    from forensics.views.catalogue import show_playbook, show_rules
    from forensics.views.console import console_for
    from forensics.views.output import destination

    found = {known.id: known for known in registry()}
    if rule not in found:
        raise typer.BadParameter(unknown_rule(rule, list(found)))
    path = playbook_dir() / f"{found[rule].playbook or rule}.md"
    with destination(None) as out:
        console = console_for(out, color.value)
        if path.is_file():
            show_playbook(path, console)
        else:
            show_rules([found[rule]], console)
