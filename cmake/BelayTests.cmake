# Every test there is, in few binaries: one per module, one per kind of cross-module
# test. Linking is what a third binary per file would cost on two cores.

# The modules whose tests also run under the address sanitizer in ./test: they
# parse bytes from disk or carry the user's data. The rest has `ctest --preset asan`.
set(BELAY_SLICE store ignore git restore)

# Every test sees these; a test binary run by hand sets what is missing itself.
set(test_environment
    "BELAY_BIN=${PROJECT_BINARY_DIR}/bin/belay"
    "BELAY_BUILD_DIR=${PROJECT_BINARY_DIR}"
    "BELAY_SOURCE_DIR=${PROJECT_SOURCE_DIR}")
if(BELAY_SANITIZE)
  list(APPEND test_environment BELAY_SANITIZED=1)  # memory and time say nothing there
endif()

# Test code itself is compiled more often than it is run. Not -O0: inline functions are
# taken from the first object that has them, and the program's own then run as slowly.
set(test_options $<$<CONFIG:Release>:-O1>)

add_custom_target(slice_tests)  # what ./test builds of the slice preset

function(belay_gtest name library label)
  belay_together(sources ${name}_test ${ARGN})
  add_executable(${name}_test ${sources})
  # The support library first: it may use anything its user links.
  target_link_libraries(${name}_test PRIVATE belay_test_pch belay_test_support ${library})
  target_precompile_headers(${name}_test REUSE_FROM belay_test_pch)
  target_compile_options(${name}_test PRIVATE ${test_options})
  # One label: gtest_discover_tests flattens lists in its properties.
  gtest_discover_tests(${name}_test TEST_PREFIX "${name}." DISCOVERY_MODE PRE_TEST
                       DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300 LABELS ${label})
endfunction()

find_package(GTest)
if(GTest_FOUND)
  include(GoogleTest)

  file(GLOB support_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/support/*.cc")
  list(FILTER support_sources EXCLUDE REGEX "_test\\.cc$")
  if(support_sources)
    add_library(belay_test_support STATIC ${support_sources})
    # Each alone: whoever takes one of them would need all that the others need.
    set(scope PUBLIC)
  else()
    add_library(belay_test_support INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(belay_test_support ${scope} ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(belay_test_support ${scope} belay_includes GTest::gmock GTest::gtest)
  if(TARGET belay_base)
    target_link_libraries(belay_test_support ${scope} belay_base)
  endif()

  # gtest and gmock take 1.3 s of every test source without this.
  configure_file(cmake/test_main.cc.in generated/test_main.cc @ONLY)
  add_library(belay_test_pch OBJECT "${PROJECT_BINARY_DIR}/generated/test_main.cc")
  target_link_libraries(belay_test_pch PUBLIC GTest::gmock GTest::gtest)
  target_compile_options(belay_test_pch PRIVATE ${test_options})
  target_precompile_headers(belay_test_pch PRIVATE
    <gtest/gtest.h> <gmock/gmock.h> <algorithm> <cstdint> <functional> <map> <memory>
    <optional> <span> <string> <string_view> <utility> <vector>)

  # Small programs that script tests run (a store to look at, a program to kill, ...).
  file(GLOB helper_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/tools/*.cc")
  foreach(source IN LISTS helper_sources)
    get_filename_component(helper ${source} NAME_WE)
    add_executable(${helper} ${source})
    target_link_libraries(${helper} PRIVATE belay_test_support ${BELAY_WHOLE})
  endforeach()

  foreach(module IN LISTS BELAY_MODULES)
    file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/${module}/*.cc")
    if(sources AND TARGET belay_${module})
      if(module IN_LIST BELAY_SLICE)
        belay_gtest(${module} belay_${module} slice.${module} ${sources})
        add_dependencies(slice_tests ${module}_test)
      else()
        belay_gtest(${module} belay_${module} ${module} ${sources})
      endif()
    endif()
  endforeach()
  # What reads the agents' JSON is compared with simdjson, where there is one.
  find_library(BELAY_SIMDJSON simdjson)
  mark_as_advanced(BELAY_SIMDJSON)
  if(TARGET agent_test AND BELAY_SIMDJSON)
    set_source_files_properties("${PROJECT_SOURCE_DIR}/tests/agent/json_differential_test.cc"
      PROPERTIES COMPILE_DEFINITIONS BELAY_HAVE_SIMDJSON=1 SKIP_PRECOMPILE_HEADERS ON)
    target_link_libraries(agent_test PRIVATE ${BELAY_SIMDJSON})
  endif()
  foreach(kind IN ITEMS support crash model hostile)
    file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/${kind}/*.cc")
    if(kind STREQUAL "support")
      list(FILTER sources INCLUDE REGEX "_test\\.cc$")
    endif()
    if(kind STREQUAL "crash" AND TARGET belay_store)
      # The store's alone: its mutants then need nothing else built (tools/mutants).
      set(of_store ${sources})
      list(FILTER of_store INCLUDE REGEX "/(store_[a-z]+|store_[a-z]+_test|kill_sweep_test)\\.cc$")
      list(FILTER sources EXCLUDE REGEX "/(store_[a-z]+_test|kill_sweep_test|store_ops)\\.cc$")
      belay_gtest(store_crash belay_store crash ${of_store})
    endif()
    if(sources)
      belay_gtest(${kind} ${BELAY_WHOLE} ${kind} ${sources})
    endif()
  endforeach()
else()
  message(STATUS "GoogleTest is missing: only the script tests are built")
endif()

# Script tests: exit 0 passed, 77 skipped (the last line says why), else failed.
function(belay_script_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LABEL;TIMEOUT" "COMMAND;CONFIGURATIONS")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  if(arg_CONFIGURATIONS)
    set(only CONFIGURATIONS ${arg_CONFIGURATIONS})
  endif()
  add_test(NAME ${name} COMMAND ${arg_COMMAND} WORKING_DIRECTORY ${PROJECT_BINARY_DIR} ${only})
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT ${arg_TIMEOUT}
                       LABELS "${arg_LABEL}" ENVIRONMENT "${test_environment}"
                       # Debian's own programs first: a shim of python3 takes 170 ms each time.
                       ENVIRONMENT_MODIFICATION "PATH=path_list_prepend:/bin;PATH=path_list_prepend:/usr/bin")
endfunction()

if(TARGET belay)
  foreach(kind IN ITEMS cli crash package)
    file(GLOB scripts CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/${kind}/*.sh")
    foreach(script IN LISTS scripts)
      get_filename_component(name ${script} NAME_WE)
      belay_script_test(${kind}.${name} LABEL ${kind} COMMAND bash ${script})
    endforeach()
  endforeach()
endif()

belay_script_test(tools.check_includes LABEL tools
  COMMAND python3 ${PROJECT_SOURCE_DIR}/tools/check_includes.py ${PROJECT_SOURCE_DIR})
belay_script_test(tools.run_tests LABEL tools
  COMMAND python3 ${PROJECT_SOURCE_DIR}/tests/tools/run_tests_test.py)
belay_script_test(tools.mutants LABEL tools
  COMMAND python3 ${PROJECT_SOURCE_DIR}/tests/tools/mutants_test.py)
belay_script_test(tools.check_includes_can_fail LABEL tools
  COMMAND python3 ${PROJECT_SOURCE_DIR}/tools/check_includes.py --self-test)

# Real agents: tests/agents/README.md. Here their recorded stories, and the smallest of them.
foreach(test IN ITEMS model harness)
  belay_script_test(agents.${test} LABEL agents
    COMMAND python3 ${PROJECT_SOURCE_DIR}/tests/agents/${test}_test.py)
endforeach()
if(TARGET belay)
  belay_script_test(agents.replay LABEL agents
    COMMAND ${PROJECT_SOURCE_DIR}/tests/agents/replay)
  belay_script_test(agents.smallest LABEL agents
    COMMAND ${PROJECT_SOURCE_DIR}/tests/agents/run reasonix)
  belay_script_test(agents.smallest_chat LABEL agents
    COMMAND ${PROJECT_SOURCE_DIR}/tests/agents/run --chat reasonix)
endif()

# Only `ctest --preset all` (-C All) runs these: each takes minutes.
foreach(preset IN ITEMS asan tsan)
  belay_script_test(preset.${preset} LABEL slow TIMEOUT 3600 CONFIGURATIONS All
    COMMAND ${PROJECT_SOURCE_DIR}/tools/test_preset ${preset})
endforeach()
foreach(script IN ITEMS package_test fresh_machine_test)
  belay_script_test(machine.${script} LABEL slow TIMEOUT 3600 CONFIGURATIONS All
    COMMAND ${PROJECT_SOURCE_DIR}/tools/${script})
endforeach()
