# Everything comes from the system. docker/packages.txt is the one list of what
# has to be there and how new; what is missing or old stops here, with the
# package's name and the command that mends it.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

set(package_list "${CMAKE_SOURCE_DIR}/docker/packages.txt")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${package_list}")

# Lines like "libsqlite3-dev  # lib: sqlite3 >= 3.40" of the given KIND.
function(tt_require kind)
  file(STRINGS "${package_list}" lines REGEX "# ${kind}: ")
  foreach(line IN LISTS lines)
    string(REGEX MATCH "^([^ ]+) +# ${kind}: (.+)$" matched "${line}")
    set(package "${CMAKE_MATCH_1}")
    set(wanted "${CMAKE_MATCH_2}")
    execute_process(COMMAND "${PKG_CONFIG_EXECUTABLE}" --exists --print-errors "${wanted}"
                    RESULT_VARIABLE failed ERROR_VARIABLE reason)
    if(failed)
      message(FATAL_ERROR "tensor-trace needs ${wanted} (Debian package ${package}). `./tt build` "
                          "sets up a system that has it.\n${reason}")
    endif()
  endforeach()
endfunction()

tt_require(lib)
# The versions that the probe was tested with are in tracer/library_gate.cpp.
pkg_check_modules(LLAMA REQUIRED QUIET IMPORTED_TARGET llama ggml)
add_library(llama_cpp INTERFACE)
target_link_libraries(llama_cpp INTERFACE PkgConfig::LLAMA ggml-base)
pkg_check_modules(HTTPLIB REQUIRED QUIET IMPORTED_TARGET cpp-httplib)
pkg_check_modules(WEBSOCKETS REQUIRED QUIET IMPORTED_TARGET libwebsockets)
pkg_check_modules(SPDLOG REQUIRED QUIET IMPORTED_TARGET spdlog)
pkg_check_modules(PROMETHEUS REQUIRED QUIET IMPORTED_TARGET prometheus-cpp-core)
pkg_check_modules(ZSTD REQUIRED QUIET IMPORTED_TARGET libzstd)
pkg_check_modules(ZLIB REQUIRED QUIET IMPORTED_TARGET zlib)  # libpng-dev brings it
pkg_check_modules(YAML REQUIRED QUIET IMPORTED_TARGET yaml-cpp)
pkg_check_modules(SQLITE REQUIRED QUIET IMPORTED_TARGET sqlite3)
pkg_check_modules(PARQUET REQUIRED QUIET IMPORTED_TARGET arrow parquet)
pkg_check_modules(PNG REQUIRED QUIET IMPORTED_TARGET libpng)
find_package(Protobuf REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
# Its bodies compiled once instead of in each file that includes it (a third of what such
# a file takes), as its own CLI11_PRECOMPILED does, which Debian's package does not use.
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

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER "${CCACHE}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE}")
endif()
