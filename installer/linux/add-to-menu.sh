#!/bin/sh
# Adds Fiddler Chat, in the folder where this script lies, to this user's application menu.
# Run it again after moving the folder; `add-to-menu.sh --remove` takes the entry away.
set -eu
folder=$(cd "$(dirname "$0")" && pwd)
menu=${XDG_DATA_HOME:-$HOME/.local/share}/applications
entry=$menu/fiddler-chat.desktop
if [ "${1:-}" = "--remove" ]; then
  rm -f "$entry"
  echo "Removed $entry"
  exit 0
fi
mkdir -p "$menu"
# A desktop entry needs whole paths; `|` and `&` mean something to sed.
escaped=$(printf '%s' "$folder" | sed 's/[\\&|]/\\&/g')
sed "s|@FOLDER@|$escaped|g" "$folder/share/applications/fiddler-chat.desktop.in" >"$entry.new"
mv "$entry.new" "$entry"
echo "Added $entry"
