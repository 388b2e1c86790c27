# -DSANITIZE=address,undefined or thread; the asan and tsan presets set it.
set(SANITIZE "" CACHE STRING "Sanitizers for our own code (address,undefined or thread)")
if(SANITIZE)
  # A finding ends the test; by default UBSan only prints it.
  add_compile_options(-fsanitize=${SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${SANITIZE})
  set(gcc "$<STREQUAL:${CMAKE_CXX_COMPILER_ID},GNU>")
  if(SANITIZE MATCHES "address")
    # GCC documents false positives in instrumented code, here inside std::regex.
    add_compile_options($<${gcc}:-Wno-maybe-uninitialized>)
  endif()
  if(SANITIZE MATCHES "thread")
    # GCC does not model atomic_thread_fence, which libraries use, under TSan.
    add_compile_options($<${gcc}:-Wno-tsan>)
  endif()
endif()
