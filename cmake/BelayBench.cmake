# One program per bench/*.cc; none of them is a test. bench/lab_*.cc are what the
# benchmarks measure with: they use nothing of ours and are linked statically, so that
# starting one costs next to nothing (lab_hello is how little).

file(GLOB bench_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/bench/*.cc")
foreach(source IN LISTS bench_sources)
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY
                                           "${PROJECT_BINARY_DIR}/bench")
  if(name MATCHES "^lab_")
    target_link_libraries(${name} PRIVATE Threads::Threads)
    if(NOT BELAY_SANITIZE)  # a sanitizer's library is shared
      target_link_options(${name} PRIVATE -static)
    endif()
  else()
    target_link_libraries(${name} PRIVATE ${BELAY_WHOLE} belay_includes)
  endif()
endforeach()
