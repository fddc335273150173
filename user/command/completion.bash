# SPDX-License-Identifier: GPL-2.0-only
# Completion of nhmtap for bash. The program itself says what a line may go on with.

_nhmtap()
{
	local line=${COMP_LINE:0:COMP_POINT} current=${COMP_WORDS[COMP_CWORD]} words last whole
	read -ra words <<< "$line"
	# What follows a blank is a new word.
	[[ $line == *[[:blank:]] ]] && words+=("")
	last=${words[-1]}
	# bash splits words at = and : and takes what it is given for the last piece.
	[[ $current == [=:] ]] && current=
	COMPREPLY=()
	while IFS= read -r whole; do
		COMPREPLY+=("${whole#"${last%"$current"}"}")
	done < <("${words[0]}" completion words -- "${words[@]:1}" 2> /dev/null)
	# A list and an option with a value go on behind it.
	[[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
	return 0
}

complete -o default -F _nhmtap nhmtap
