"""What a live session shows: events as ndjson, plain lines, or a screen that is redrawn.

Each is called with one notice after the other; none computes.
"""
