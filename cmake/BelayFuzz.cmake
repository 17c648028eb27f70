# One libFuzzer program per tests/fuzz/fuzz_*.cc. fuzz_<module>_<what>.cc links
# <module> and what it needs; any other name links everything.

add_custom_target(fuzz_targets)
file(GLOB fuzz_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/fuzz/fuzz_*.cc")
foreach(source IN LISTS fuzz_sources)
  get_filename_component(name ${source} NAME_WE)
  string(REGEX MATCH "^fuzz_([a-z]+)" unused ${name})
  set(library ${BELAY_WHOLE})
  if(TARGET belay_${CMAKE_MATCH_1})
    set(library belay_${CMAKE_MATCH_1})
  endif()
  add_executable(${name} ${source})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE ${library} belay_includes)
  target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY
                                           "${PROJECT_BINARY_DIR}/fuzz")
  add_dependencies(fuzz_targets ${name})
endforeach()
