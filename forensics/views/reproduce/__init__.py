"""Draws a reproduction: the plan before it, each trial while it runs, the verdict, `report.md`."""
