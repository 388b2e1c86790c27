# Writes DEPFILE: the built page (OUTPUT) depends on every file and folder below SOURCES, so that
# adding or removing a file builds the page again, without a search for new files in each build.
file(GLOB_RECURSE inputs LIST_DIRECTORIES true "${SOURCES}/*")
string(REPLACE " " "\\ " inputs "${inputs}")
list(JOIN inputs " \\\n  " inputs)
file(WRITE "${DEPFILE}" "${OUTPUT}: ${SOURCES} \\\n  ${inputs}\n")
