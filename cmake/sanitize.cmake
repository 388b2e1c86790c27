# -DSANITIZE=address,undefined or thread: set by the asan and tsan presets.
set(SANITIZE "" CACHE STRING "Sanitizers for our own code (address,undefined or thread)")
if(SANITIZE)
  # A finding ends the test: UBSan alone would only print it.
  add_compile_options(-fsanitize=${SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${SANITIZE})
  set(gcc "$<STREQUAL:${CMAKE_CXX_COMPILER_ID},GNU>")
  if(SANITIZE MATCHES "address")
    # GCC's own documentation: instrumented code makes it see uninitialised
    # values where there are none, here inside of std::regex.
    add_compile_options($<${gcc}:-Wno-maybe-uninitialized>)
  endif()
  if(SANITIZE MATCHES "thread")
    # GCC does not model atomic_thread_fence under TSan; libraries use it.
    add_compile_options($<${gcc}:-Wno-tsan>)
  endif()
endif()
