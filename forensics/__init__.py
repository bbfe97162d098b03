"""Diagnose SGLang launches from their logs."""

__version__ = "0.1.0"
