#!/bin/sh
# fetch_model.sh NAME [FOLDER]: fetches a model (default, small, tiny) into the user's cache; the last line is its path.
# The program carries the same script: rudder agent --fetch.
exec python3 "$(dirname "$0")/../src/agent/fetch_model.py" "$@"
