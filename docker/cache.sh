# shellcheck shell=bash
# Where the environment and the caches lie, for tt and root.sh: $cache, a folder
# called tensor-trace. TT_CACHE names it, or the disk on which it is made.
#
# An earlier version put them straight into the folder that TT_CACHE named, beside
# whatever else was there. What it set up stays in use; owns_cache fails then, and
# of such a folder only environments are ever removed.
cache=${TT_CACHE:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/tensor-trace}
# Whoever is told of it may stand in another folder: ccache, in that of a build.
[[ $cache == /* ]] || cache=$(realpath --canonicalize-missing --no-symlinks -- "$cache")
cache=${cache%/}
owns_cache() { [[ ${cache##*/} == tensor-trace ]]; }
owns_cache || compgen -G "$cache/root-*.lock" >/dev/null || cache+=/tensor-trace
