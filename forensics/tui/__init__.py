"""The interactive timeline: lanes, event table, raw log and detail, drawn with Textual.

Only `forensics tui` and `forensics run --tui` import this package. It draws the same diagnosis as
every other view, and judges nothing.
"""
