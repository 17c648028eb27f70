# One static library per directory of src/, and the program.

find_package(Threads REQUIRED)

# Static archives: with shared ones the dynamic loader doubles the start-up time.
function(belay_static_library name archive header)
  find_library(${name}_ARCHIVE ${archive} REQUIRED)
  find_path(${name}_INCLUDE ${header} REQUIRED)
  mark_as_advanced(${name}_ARCHIVE ${name}_INCLUDE)
  add_library(belay_dep_${name} INTERFACE)
  target_link_libraries(belay_dep_${name} INTERFACE ${${name}_ARCHIVE})
  target_include_directories(belay_dep_${name} SYSTEM INTERFACE ${${name}_INCLUDE})
endfunction()
belay_static_library(crypto libcrypto.a openssl/evp.h)
belay_static_library(zstd libzstd.a zstd.h)
belay_static_library(sqlite3 libsqlite3.a sqlite3.h)
belay_static_library(zlib libz.a zlib.h)
target_link_libraries(belay_dep_crypto INTERFACE Threads::Threads ${CMAKE_DL_LIBS})
target_link_libraries(belay_dep_sqlite3 INTERFACE Threads::Threads ${CMAKE_DL_LIBS} m)

set(BELAY_DEPS_base Threads::Threads belay_dep_crypto)
set(BELAY_DEPS_store belay_dep_zstd belay_dep_sqlite3)
set(BELAY_DEPS_git belay_dep_zlib)

# Taken when configuring, so that a commit alone rebuilds nothing.
set(BELAY_REVISION "")
find_program(GIT_PROGRAM git)
mark_as_advanced(GIT_PROGRAM)
if(GIT_PROGRAM AND EXISTS "${PROJECT_SOURCE_DIR}/.git")
  execute_process(COMMAND ${CMAKE_COMMAND} -E env --unset=GIT_DIR
                          ${GIT_PROGRAM} -C ${PROJECT_SOURCE_DIR} rev-parse --short HEAD
                  OUTPUT_VARIABLE BELAY_REVISION OUTPUT_STRIP_TRAILING_WHITESPACE
                  ERROR_QUIET)
endif()
configure_file(cmake/belay_version.h.in generated/belay_version.h @ONLY)

add_library(belay_includes INTERFACE)
target_include_directories(belay_includes INTERFACE ${PROJECT_SOURCE_DIR}/src
                                                    ${PROJECT_BINARY_DIR}/generated)

# The standard headers that most sources want anyway, parsed once: a fifth off a
# clean build. Not in the fuzz preset, so that a source which forgets one of them is
# noticed there.
if(NOT BELAY_FUZZ OR BELAY_TESTS)
  file(GENERATE OUTPUT generated/pch.cc CONTENT "// Carries the precompiled header.\n")
  add_library(belay_pch OBJECT "${PROJECT_BINARY_DIR}/generated/pch.cc")
  target_link_libraries(belay_pch PRIVATE Threads::Threads)
  target_precompile_headers(belay_pch PRIVATE
    <algorithm> <array> <cstdint> <cstring> <functional> <map> <memory> <mutex>
    <optional> <span> <string> <string_view> <unordered_map> <utility> <variant> <vector>)
endif()

# Several sources as one: half off a clean build. So no two sources of a directory may
# give the same name to different things, not even in an anonymous namespace; those whose
# names are the fields of a record are compiled alone. The debug, clang and fuzz presets
# compile every source alone, and notice what only stands because of its neighbours.
# Not CMake's own unity builds: theirs include absolute paths, so that no clone finds
# in ccache what another has compiled (docs/decisions/0018).
set(BELAY_ALONE src/core/annotate.cc src/core/git_record.cc src/core/operations.cc
                src/core/sessions.cc tests/agent/json_differential_test.cc)
list(TRANSFORM BELAY_ALONE PREPEND "${PROJECT_SOURCE_DIR}/")
# belay_together(OUT TARGET SOURCE...): what is to be compiled for these sources, which
# are below src/ or tests/ and found there by -I.
function(belay_together out target)
  set(compiled "")
  set(text "")
  set(count 0)
  set(files 0)
  foreach(source IN LISTS ARGN)
    if(NOT BELAY_TOGETHER OR source IN_LIST BELAY_ALONE)
      list(APPEND compiled ${source})
      continue()
    endif()
    string(REGEX REPLACE "^${PROJECT_SOURCE_DIR}/(src|tests)/" "" name ${source})
    string(APPEND text "#include \"${name}\"\n")
    math(EXPR count "${count} + 1")
    if(count EQUAL BELAY_TOGETHER)
      belay_write_together("${target}_${files}" "${text}")
      math(EXPR files "${files} + 1")
      set(text "")
      set(count 0)
    endif()
  endforeach()
  if(count)
    belay_write_together("${target}_${files}" "${text}")
  endif()
  set(${out} ${compiled} PARENT_SCOPE)
endfunction()
macro(belay_write_together name text)
  set(together "${PROJECT_BINARY_DIR}/generated/together/${name}.cc")
  file(CONFIGURE OUTPUT ${together} CONTENT "${text}" @ONLY)  # only where it differs
  list(APPEND compiled ${together})
endmacro()

set(BELAY_LIBRARIES "")  # the modules that exist so far, lowest first
foreach(module IN LISTS BELAY_MODULES)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${module}/*.cc")
  list(REMOVE_ITEM sources "${PROJECT_SOURCE_DIR}/src/cli/main.cc")
  if(NOT sources)
    continue()
  endif()
  belay_together(sources ${module} ${sources})
  add_library(belay_${module} STATIC ${sources})
  # Highest first: the order in which a linker wants static archives.
  set(above ${BELAY_LIBRARIES})
  list(REVERSE above)
  target_link_libraries(belay_${module} PUBLIC belay_includes ${above})
  target_link_libraries(belay_${module} PRIVATE ${BELAY_DEPS_${module}})
  if(TARGET belay_pch)
    target_precompile_headers(belay_${module} REUSE_FROM belay_pch)
  endif()
  list(APPEND BELAY_LIBRARIES belay_${module})
endforeach()
list(LENGTH BELAY_LIBRARIES count)
if(count)
  list(GET BELAY_LIBRARIES -1 BELAY_WHOLE)  # links everything
else()
  set(BELAY_WHOLE belay_includes)
endif()

file(GLOB main_source CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/cli/main.cc")
if(main_source AND NOT BELAY_FUZZ)
  add_executable(belay ${main_source})
  target_link_libraries(belay PRIVATE ${BELAY_WHOLE} belay_includes)
endif()
