"""The line, live: logs that are still growing, launches that are still running.

`Session` is the line of `analyze`, fed in small pieces. `Watch` asks it when it is worth asking,
says what changed, and knows when to stop. `follow` brings the bytes of growing files, `supervise`
those of a command that it runs itself.
"""
