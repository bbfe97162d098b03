# Runs "$@" elsewhere, and ends it with all it started when our standard input ends.
# POSIX shell and /proc alone, since it runs in containers. Its text is passed by `sh -c`.
exec 3<&0 </dev/null
"$@" 3<&- &
child=$!

rest() {  # what the launch left: its marked processes, and all of our session if that is our own
  for entry in /proc/[0-9]*; do
    pid=${entry#/proc/}
    [ "$pid" = "$$" ] && continue
    { read -r line <"$entry/stat"; } 2>/dev/null || continue
    state=${line##*) }
    session=$(set -- $state; echo "$4")
    if [ "$session" = "$$" ] || is_marked "$entry"; then
      [ "${state%% *}" = Z ] || kill -KILL "$pid" 2>/dev/null
    fi
  done
}

is_marked() {
  [ -n "${FORENSICS_TRIAL:-}" ] && { tr '\0' '\n' <"$1/environ"; } 2>/dev/null |
    grep -q -x "FORENSICS_TRIAL=$FORENSICS_TRIAL"
}

end() {
  trap '' HUP INT TERM
  kill -TERM "$child" 2>/dev/null
  left=60
  while [ "$left" -gt 0 ] && kill -0 "$child" 2>/dev/null; do
    sleep 0.2
    left=$((left - 1))
  done
  kill -KILL "$child" 2>/dev/null
}

trap end HUP INT TERM
(cat <&3 >/dev/null; kill -TERM "$$") 2>/dev/null &
watcher=$!
wait "$child"
status=$?
trap '' HUP INT TERM
kill "$watcher" 2>/dev/null
rest
exit "$status"
