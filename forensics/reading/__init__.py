"""Where log lines come from: sources, blocks of whole lines, and the wrappers around lines."""
