#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Completion as a person meets it: bash completes verbs, options, metrics and columns; zsh reads its file and completes.
# Usage: completion.sh CSTATECTL
set -u
export LC_ALL=C.UTF-8 # tmux wants UTF-8, whatever the caller has
ctl=$1
status=0
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad() {
        echo "$*"
        status=1
}
"$ctl" --completion bash >"$dir/cstatectl.bash" || bad "--completion bash fails"
"$ctl" --completion zsh >"$dir/_cstatectl" || bad "--completion zsh fails"
"$ctl" --completion fish >/dev/null 2>&1
[ $? -eq 2 ] || bad "--completion fish does not exit 2"
# shellcheck source=/dev/null
. "$dir/cstatectl.bash" || bad "bash does not read it"

# complete WORD...: what stands for the last word.
complete_words() {
        COMP_WORDS=(cstatectl "$@")
        COMP_CWORD=$#
        COMPREPLY=()
        _cstatectl
        echo "${COMPREPLY[*]-}"
}
check() {
        local want=$1 got
        shift
        got=" $(complete_words "$@") "
        [[ $got == *" $want "* ]] || bad "completing \"$*\": \"$want\" is not among: $got"
}
mapfile -t verbs < <("$ctl" --help | awk '/^  [a-z]/ { print $1 }')
[ ${#verbs[@]} -gt 9 ] || bad "too few verbs in --help: ${verbs[*]}"
for verb in "${verbs[@]}"; do
        check "$verb" ""
        # every long option of its help is completed
        for option in $("$ctl" "$verb" --help | grep -oE '^ +(-[a-zA-Z], )?--[a-z_-]+' | grep -oE -- '--[a-zA-Z_-]+'); do
                check "$option" "$verb" "--"
        done
done
check compare co
check --db --d
check pkg_watts query --metric pkg
check busy,c6 query --metric busy,c6
check Pkg%pc6 --show Pkg
check Pkg%pc6 snapshot --show Pkg
check package show --scope p
check true run -- tru

if command -v zsh >/dev/null && command -v tmux >/dev/null; then
        zsh -n "$dir/_cstatectl" || bad "zsh cannot parse it"
        mkdir "$dir/bin"
        ln -s "$(readlink -f "$ctl")" "$dir/bin/cstatectl"
        cat >"$dir/.zshrc" <<END
PS1='ready> '
path=("$dir/bin" \$path)
fpath=("$dir" \$fpath)
autoload -U compinit
compinit -u -D
END
        tmux() { command tmux -S "$dir/tmux" -f /dev/null "$@"; }
        # seen TEXT: waits until the terminal shows it.
        seen() {
                for _ in {1..100}; do
                        case $(tmux capture-pane -p) in *"$1"*) return 0 ;; esac
                        sleep 0.1
                done
                bad "zsh does not show \"$1\": $(tmux capture-pane -p)"
        }
        ZDOTDIR=$dir tmux new-session -d -x 100 -y 24 "zsh -i"
        seen "ready>"
        tmux send-keys "cstatectl comp" Tab
        seen "cstatectl compare"
        tmux send-keys -- "--thr" Tab
        seen "--threshold="
        tmux send-keys C-u "cstatectl query --metric=pkg_w" Tab
        seen "pkg_watts"
        tmux kill-server
fi
exit $status
