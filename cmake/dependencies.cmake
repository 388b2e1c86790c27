# Everything comes from the system (docker/packages.txt is the one list). A
# missing or old library stops here with the command that mends it.
function(tt_need what found version minimum)
  if(NOT ${found})
    message(FATAL_ERROR "${what} was not found. `./tt build` sets up a system that has it "
                        "(package list: docker/packages.txt).")
  endif()
  if(minimum AND version VERSION_LESS minimum)
    message(FATAL_ERROR "${what} ${version} is older than ${minimum}. `./tt build` sets up a "
                        "system that has it (package list: docker/packages.txt).")
  endif()
endfunction()

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

# The versions that the probe was tested with are in tracer/library_gate.cpp.
pkg_check_modules(LLAMA QUIET IMPORTED_TARGET llama ggml)
tt_need("libllama" ${LLAMA_FOUND} "${LLAMA_llama_VERSION}" "")
add_library(llama_cpp INTERFACE)
target_link_libraries(llama_cpp INTERFACE PkgConfig::LLAMA ggml-base)

find_package(SQLite3 QUIET)
tt_need("SQLite" ${SQLite3_FOUND} "${SQLite3_VERSION}" 3.40)
pkg_check_modules(ZSTD QUIET IMPORTED_TARGET libzstd)
tt_need("zstd" ${ZSTD_FOUND} "${ZSTD_VERSION}" 1.5)
find_package(nlohmann_json QUIET)
tt_need("nlohmann-json" ${nlohmann_json_FOUND} "${nlohmann_json_VERSION}" 3.11)
find_package(CLI11 QUIET)
tt_need("CLI11" ${CLI11_FOUND} "${CLI11_VERSION}" 2.3)
pkg_check_modules(HTTPLIB QUIET IMPORTED_TARGET cpp-httplib)
tt_need("cpp-httplib" ${HTTPLIB_FOUND} "${HTTPLIB_VERSION}" 0.18)
pkg_check_modules(WEBSOCKETS QUIET IMPORTED_TARGET libwebsockets)
tt_need("libwebsockets" ${WEBSOCKETS_FOUND} "${WEBSOCKETS_VERSION}" 4.3)
if(BUILD_TESTING)
  find_package(GTest QUIET)
  tt_need("GoogleTest" ${GTest_FOUND} "${GTest_VERSION}" 1.14)
endif()
if(TT_BENCH)
  find_package(benchmark QUIET)
  tt_need("Google Benchmark" ${benchmark_FOUND} "${benchmark_VERSION}" 1.8)
endif()
