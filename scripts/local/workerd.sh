#!/bin/sh
# Runs workerd ($FANOUT_WORKERD) and ends it when the gateway that started it is gone, even by a SIGKILL.
gateway=$PPID
workerd=$$
(
  while kill -0 "$gateway" && kill -0 "$workerd"; do sleep 1; done
  kill -0 "$gateway" || kill -9 "$workerd"
) < /dev/null > /dev/null 2>&1 3>&- &
# The same process: workerd has the id of this shell.
# Ctrl-C reaches all processes of a terminal: the gateway stops workerd when the requests in progress have ended.
trap '' INT HUP
exec "$FANOUT_WORKERD" "$@"
