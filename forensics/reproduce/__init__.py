"""Relaunch: a plan fixed before it runs, trials that end at the earliest line that decides, and a
verdict in fixed words.
"""
