# shellcheck shell=bash
# Sets $cache for tt and root.sh: the folder of the environments and caches, named
# tensor-trace. TT_CACHE is this folder or its parent.
#
# An earlier version stored the environments directly in the TT_CACHE folder, next to other
# files. Such a folder remains in use. owns_cache fails for it, and only environments are
# removed from it.
[[ -n ${HOME:-} ]] || { unset HOME; export HOME=~; }  # of the user database (cron, systemd, su -c)
cache=${TT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tensor-trace}
# Absolute, because programs run in other folders use it (ccache runs in the build folder).
[[ $cache == /* ]] || cache=$(realpath --canonicalize-missing --no-symlinks -- "$cache")
cache=${cache%/}
owns_cache() { [[ ${cache##*/} == tensor-trace ]]; }
owns_cache || compgen -G "$cache/root-*.lock" >/dev/null || cache+=/tensor-trace
