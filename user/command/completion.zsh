#compdef nhmtap
# SPDX-License-Identifier: GPL-2.0-only
# Completion of nhmtap for zsh. The program itself says what a line may go on with.

_nhmtap() {
	local -a found
	found=("${(@f)$($words[1] completion words -- "${(@)words[2,CURRENT-1]}" "$PREFIX" 2> /dev/null)}")
	if [[ -n ${found[1]} ]]; then
		compadd -Q -S ' ' -- "${(@)found:#*=}"
		compadd -Q -S '' -- "${(@M)found:#*=}"
	else
		_files
	fi
}

if [[ $funcstack[1] == _nhmtap ]]; then
	_nhmtap "$@"
else
	compdef _nhmtap nhmtap
fi
