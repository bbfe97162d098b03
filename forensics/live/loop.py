"""The loop of `watch`: looks at the sources, hands on what they bring, until there is a verdict."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from forensics.live.follow import POLL_S, SERVING_POLL_S, Follower, follower_of
from forensics.live.notices import Verdict
from forensics.live.processes import WriterVigil
from forensics.live.session import Session
from forensics.live.watch import Watch


def follow(
    paths: Sequence[str],
    session: Session,
    watch: Watch,
    vigil: WriterVigil | None = None,
    each_round: Callable[[], None] | None = None,
    followers: Sequence[Follower] | None = None,
) -> Verdict:
    """Watch sources until there is a verdict. Raises OSError if one cannot be read.

    `followers` read the sources where their paths alone do not say how.
    """
    followers = followers or [follower_of(path) for path in paths]
    ended: set[int] = set()
    caught_up = False
    try:
        while True:
            heard = 0
            for index, follower in enumerate(followers):
                if index not in ended:
                    heard += _look(index, follower, session, watch, ended)
            if not caught_up and not heard:
                caught_up = True
                watch.caught_up(min((f.age_s() for f in followers), default=0.0))
            if len(ended) == len(followers):
                if not caught_up:
                    watch.caught_up()
                return watch.finish("the input has ended")
            if vigil is not None:
                vigil.files = [file for f in followers if (file := f.file) is not None]
            if caught_up and (verdict := watch.step()):
                return verdict
            if each_round:
                each_round()
            if not heard:
                time.sleep(SERVING_POLL_S if watch.serving else POLL_S)
    finally:
        for follower in followers:
            follower.close()


def _look(index: int, follower: Follower, session: Session, watch: Watch, ended: set[int]) -> int:
    """One look at one source; returns the bytes it brought."""
    size = 0
    for heard in follower.look():
        if heard.data:
            watch.heard(index, heard.data)
            size += len(heard.data)
        if heard.begins_anew:
            session.end(index)
            path = session.sources[index].facts.path
            watch.places.rotated(path, session.lines(index))
            watch.remark(f"{path}: {heard.begins_anew}; reading on from its beginning")
        if heard.ended:
            ended.add(index)
    return size
