# One place for the language level, warnings and sanitizers. Presets choose FLYBALL_SANITIZE and FLYBALL_COVERAGE.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})

set(FLYBALL_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize= takes them")
option(FLYBALL_COVERAGE "Instrument for coverage" OFF)
option(FLYBALL_FUZZ "Build the libFuzzer targets (clang only)" OFF)

# Full relative paths keep diagnostics, ccache and debug information independent of the checkout's folder.
add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
                    -ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 reports these in code that it has inlined from the standard library and fmt.
  add_compile_options(-Wno-error=maybe-uninitialized -Wno-maybe-uninitialized -Wno-restrict
                      -Wno-stringop-overflow -Wno-array-bounds -Wno-dangling-pointer)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_compile_options(-Wno-sign-conversion)  # GCC's -Wconversion leaves it out for C++; both mean the same here
endif()
if(FLYBALL_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(FLYBALL_SANITIZE)
  add_compile_options(-fsanitize=${FLYBALL_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${FLYBALL_SANITIZE})
endif()
if(FLYBALL_COVERAGE)
  add_compile_options(--coverage -fprofile-update=atomic)
  add_link_options(--coverage)
endif()

find_program(FLYBALL_MOLD mold)
if(FLYBALL_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
find_program(FLYBALL_CCACHE ccache)
if(FLYBALL_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${FLYBALL_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${FLYBALL_CCACHE})
endif()
