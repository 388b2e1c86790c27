# Warnings for our own code: link project_warnings PRIVATE. ./tt sets TT_WERROR for the presets with tests.
option(TT_WERROR "Treat warnings as errors" OFF)

add_library(project_warnings INTERFACE)
target_compile_options(project_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
  -Wconversion -Wsign-conversion -Wcast-align -Wnull-dereference -Wextra-semi
  $<$<BOOL:${TT_WERROR}>:-Werror>)
