# All dependencies are system packages. docker/packages.txt lists them with their minimum
# versions. If one is missing or too old, configuration fails with the package name and the
# command that fixes it. (./tt checks the same list first and builds in a separate
# environment if something is missing.)
find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER "${CCACHE}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE}")
endif()
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

set(package_list "${CMAKE_SOURCE_DIR}/docker/packages.txt")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${package_list}")

# Fails with the missing dependency, its package and how to get it.
function(tt_refuse wanted package reason)
  message(FATAL_ERROR "tensor-trace requires ${wanted} (Debian package ${package}). "
                      "`./tt build` sets up an environment with it.\n${reason}")
endfunction()

# Checks all lines of the given KIND, like "libsqlite3-dev  # lib: sqlite3 >= 3.40".
function(tt_require kind)
  file(STRINGS "${package_list}" lines REGEX "# ${kind}: ")
  foreach(line IN LISTS lines)
    string(REGEX MATCH "^([^ ]+) +# ${kind}: (.+)$" matched "${line}")
    set(package "${CMAKE_MATCH_1}")
    set(wanted "${CMAKE_MATCH_2}")
    if(kind STREQUAL "header")
      file(WRITE "${CMAKE_BINARY_DIR}/header_check.cpp" "#include <${wanted}>\n")
      execute_process(COMMAND ${CMAKE_CXX_COMPILER} -E "${CMAKE_BINARY_DIR}/header_check.cpp"
                      RESULT_VARIABLE failed OUTPUT_QUIET ERROR_VARIABLE reason)
    else()
      execute_process(COMMAND "${PKG_CONFIG_EXECUTABLE}" --exists --print-errors "${wanted}"
                      RESULT_VARIABLE failed ERROR_VARIABLE reason)
    endif()
    if(failed)
      tt_refuse("${wanted}" "${package}" "${reason}")
    endif()
  endforeach()
endfunction()

# Sets ${out} to the path of PROGRAM if its version is at least the listed one. Otherwise
# ${out} is false and ${out}_LACKING contains the requirement.
function(tt_find_listed program out)
  file(STRINGS "${package_list}" line REGEX "# program: ${program}( |$)")
  string(REGEX MATCH "# program: ([^ ]+)( >= (.+))?$" wanted "${line}")
  set(minimum "${CMAKE_MATCH_3}")
  string(REPLACE "# program: " "" wanted "${wanted}")
  find_program(${out} ${program})
  if(${out} AND minimum)
    execute_process(COMMAND "${${out}}" --version OUTPUT_VARIABLE said)
    string(REGEX MATCH "[0-9]+[0-9.]*" version "${said}")
    if(version VERSION_LESS minimum)
      set(${out} "" PARENT_SCOPE)
      string(APPEND wanted ", not ${version}")
    endif()
  endif()
  set(${out}_LACKING "${wanted}" PARENT_SCOPE)
endfunction()

execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -std=c++23 -fsyntax-only
                        "${CMAKE_CURRENT_LIST_DIR}/compiler_check.cpp"
                RESULT_VARIABLE failed ERROR_VARIABLE reason)
if(failed)
  tt_refuse("a compiler for C++23" "g++" "${reason}")
endif()
tt_require(header)
tt_require(lib)
tt_find_listed(protoc Protobuf_PROTOC_EXECUTABLE)
if(NOT Protobuf_PROTOC_EXECUTABLE)
  tt_refuse("protoc" "protobuf-compiler" "")
endif()
# tracer/engine/backends.cpp contains the llama.cpp versions tested with the probe.
pkg_check_modules(LLAMA REQUIRED QUIET IMPORTED_TARGET llama ggml)
add_library(llama_cpp INTERFACE)
target_link_libraries(llama_cpp INTERFACE PkgConfig::LLAMA ggml-base)
pkg_check_modules(HTTPLIB REQUIRED QUIET IMPORTED_TARGET cpp-httplib)
pkg_check_modules(WEBSOCKETS REQUIRED QUIET IMPORTED_TARGET libwebsockets)
pkg_check_modules(SPDLOG REQUIRED QUIET IMPORTED_TARGET spdlog)
pkg_check_modules(PROMETHEUS REQUIRED QUIET IMPORTED_TARGET prometheus-cpp-core)
pkg_check_modules(ZSTD REQUIRED QUIET IMPORTED_TARGET libzstd)
pkg_check_modules(ZLIB REQUIRED QUIET IMPORTED_TARGET zlib)  # a dependency of libpng-dev
pkg_check_modules(YAML REQUIRED QUIET IMPORTED_TARGET yaml-cpp)
pkg_check_modules(SQLITE REQUIRED QUIET IMPORTED_TARGET sqlite3)
pkg_check_modules(PARQUET REQUIRED QUIET IMPORTED_TARGET arrow parquet)
pkg_check_modules(PNG REQUIRED QUIET IMPORTED_TARGET libpng)
pkg_check_modules(ARCHIVE REQUIRED QUIET IMPORTED_TARGET libarchive)
find_package(Protobuf REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
# Compiles the CLI11 function bodies once instead of in each including file (one third of
# the compile time of such a file). This is CLI11_PRECOMPILED, which Debian does not enable.
file(GENERATE OUTPUT "${CMAKE_BINARY_DIR}/cli11.cpp" CONTENT "
#include <CLI/impl/App_inl.hpp>
#include <CLI/impl/Argv_inl.hpp>
#include <CLI/impl/Config_inl.hpp>
#include <CLI/impl/Encoding_inl.hpp>
#include <CLI/impl/ExtraValidators_inl.hpp>
#include <CLI/impl/Formatter_inl.hpp>
#include <CLI/impl/Option_inl.hpp>
#include <CLI/impl/Split_inl.hpp>
#include <CLI/impl/StringTools_inl.hpp>
#include <CLI/impl/Validators_inl.hpp>
")
add_library(cli11 STATIC "${CMAKE_BINARY_DIR}/cli11.cpp")
target_link_libraries(cli11 PUBLIC CLI11::CLI11)
target_compile_definitions(cli11 PUBLIC CLI11_COMPILE)
if(BUILD_TESTING)
  tt_require(test)
  find_package(GTest REQUIRED)
endif()
option(TT_BENCH "Build the benchmarks" OFF)
if(TT_BENCH)
  tt_require(bench)
  find_package(benchmark REQUIRED)
endif()
