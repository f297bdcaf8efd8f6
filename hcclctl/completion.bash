# SPDX-License-Identifier: Apache-2.0
# Completion for hcclctl in bash. Commands and options are those of hcclctl's own --help, so they are never out of date;
# sessions and processes are asked of the daemon, for half a second at most.

_hcclctl_help()
{
	"$_hcclctl" "$@" --help 2>/dev/null
}

_hcclctl_commands()
{
	_hcclctl_help | awk '/^Commands:/ { on = 1; next } /^$/ { on = 0 } on { print $1 } END { print "help" }'
}

# The words that begin with a dash where an option is described; "[=SECONDS]" and the like are not part of it.
_hcclctl_options()
{
	_hcclctl_help $1 | grep -Eo '(^|[[:space:][,])--?[a-z][a-z-]*' | grep -Eo -- '--?[a-z][a-z-]*' | sort -u
}

# Column $1 of hcclctl ps: 1 session, 2 process.
_hcclctl_ps()
{
	timeout 0.5 "$_hcclctl" "${_hcclctl_socket[@]}" ps 2>/dev/null | awk -v n="$1" 'NR > 1 && $n ~ /^[0-9]+$/ { print $n }'
}

_hcclctl_complete()
{
	local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command= i words=
	local _hcclctl=${COMP_WORDS[0]} _hcclctl_socket=() _hcclctl_levels="error warning notice info debug"

	COMPREPLY=()
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--socket) _hcclctl_socket=(--socket "${COMP_WORDS[i+1]}"); ((i++)) ;;
		-*) ;;
		*) [ -n "$command" ] || command=${COMP_WORDS[i]} ;;
		esac
	done
	case $previous in
	--socket | --daemon) COMPREPLY=($(compgen -f -- "$current")); return ;;
	--pid) words=$(_hcclctl_ps 2) ;;
	--session) words=$(_hcclctl_ps 1) ;;
	--log-level) words=$_hcclctl_levels ;;
	--local-path) words="direct engine" ;;
	esac
	if [ -n "$words" ]; then
		COMPREPLY=($(compgen -W "$words" -- "$current"))
		return
	fi
	case $command:$current in
	run:*) # from the program on it is not ours
		for ((i = 1; i < COMP_CWORD; i++)); do
			[ "${COMP_WORDS[i]}" != -- ] || { COMPREPLY=($(compgen -f -- "$current")); return; }
		done
		[[ $current == -* ]] && words=$(_hcclctl_options run)
		[ -n "$words" ] || { COMPREPLY=($(compgen -c -f -- "$current")); return; } ;;
	:-*) words=$(_hcclctl_options) ;;
	:* | help:*) words=$(_hcclctl_commands) ;;
	*:-*) words=$(_hcclctl_options "$command") ;;
	log:*) words=$_hcclctl_levels ;;
	kill:pid:*) words=$(_hcclctl_ps 2 | sed 's/^/pid:/') ;;
	kill:*) # bash takes pid:PID for three words
		case $previous:$current in
		pid::) words=$(_hcclctl_ps 2) current= ;;
		:*) words=$(_hcclctl_ps 2) ;;
		*) words=$(_hcclctl_ps 1) ;;
		esac ;;
	esac
	COMPREPLY=($(compgen -W "$words" -- "$current"))
}

complete -F _hcclctl_complete hcclctl
