# Run by CPack before it makes the package: Debian's zsh does not search site-functions below /usr.
set(zsh "${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr/share/zsh")
file(RENAME "${zsh}/site-functions" "${zsh}/vendor-completions")
