# Compiler, linker and ccache settings shared by every target.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")

# No NDEBUG anywhere: checks stay on in what users run.
set(CMAKE_CXX_FLAGS_RELEASE "-O2")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

add_compile_options(-Wall -Wextra -Wconversion -Wshadow -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 sees copies that overlap or overflow in std::string operator+ where there
  # are none (https://gcc.gnu.org/PR105329, PR105651). clang and asan look for real ones.
  add_compile_options(-Wno-restrict -Wno-array-bounds -Wno-stringop-overflow
                      -Wno-stringop-overread)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # g++ leaves signs out of -Wconversion for C++; both compilers should agree.
  add_compile_options(-Wthread-safety -Wno-sign-conversion)
endif()

# __FILE__ names the source as git does, and no directory of the machine that built
# it; the second form is what ccache makes of the first.
file(RELATIVE_PATH source_from_build "${PROJECT_BINARY_DIR}" "${PROJECT_SOURCE_DIR}")
string(REGEX REPLACE "/$" "" source_from_build "${source_from_build}")
add_compile_options(-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=
                    -fmacro-prefix-map=${source_from_build}/=)

if(BELAY_SANITIZE)
  add_compile_options(-fsanitize=${BELAY_SANITIZE} -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${BELAY_SANITIZE})
  add_compile_definitions(BELAY_SANITIZED=1)  # memory and time say nothing there
  if(BELAY_SANITIZE_NOT)
    add_compile_options(-fno-sanitize=${BELAY_SANITIZE_NOT})
  endif()
else()
  # A start of the program costs half of what it does with shared libstdc++. The
  # sanitizers cannot be combined with this: they intercept calls into it.
  add_link_options(-static-libstdc++ -static-libgcc)
  add_compile_options(-ffunction-sections -fdata-sections)
  add_link_options(-Wl,--gc-sections)
endif()
if(BELAY_MUTANTS)
  add_compile_definitions(BELAY_MUTANTS=1)
endif()

find_program(BELAY_CCACHE ccache)
if(BELAY_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # The sloppiness is what ccache asks for before it caches users of a precompiled
  # header. With this base_dir several clones share results: with "/" the paths of
  # system headers would depend on how deep the clone lies.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${BELAY_CCACHE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-fpch-preprocess)
  endif()
endif()
