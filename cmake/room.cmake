# One folder under src/ is one room and one build target. A room sees the headers of the rooms it names in DEPS, and of
# those that they name, and no others: every room exports an include folder that holds nothing but a link to itself.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(GTest REQUIRED)
find_package(benchmark REQUIRED)

add_library(octavo_flags INTERFACE)
# Warnings are errors for CI's compiler only: others know more warnings, and these must not stop the build of a user.
target_compile_options(octavo_flags INTERFACE
  -Wall -Wextra -Wconversion -Wshadow -Wnon-virtual-dtor -Wimplicit-fallthrough
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Werror>
  -fno-omit-frame-pointer -fstack-protector-strong)
# g++ 12 sees copies in inlined std::string operations that cannot happen (GCC bug 105651); behind precompiled headers it
# no longer takes them for the library's.
target_compile_options(octavo_flags INTERFACE
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict;-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread>)
# libstdc++ 12's stable_sort calls what it calls deprecated, and clang lays it at the caller's door.
target_compile_options(octavo_flags INTERFACE $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>)
# Floating-point contraction would let two builds of one expression round differently; kernels write their FMAs out.
target_compile_options(octavo_flags INTERFACE -ffp-contract=off)
target_compile_definitions(octavo_flags INTERFACE _GLIBCXX_ASSERTIONS)
if(OCTAVO_SANITIZE)
  # A report needs lines and no variables; those would make a third of the build.
  target_compile_options(octavo_flags INTERFACE -fsanitize=${OCTAVO_SANITIZE} -fno-sanitize-recover=all -g1)
  target_link_options(octavo_flags INTERFACE -fsanitize=${OCTAVO_SANITIZE})
endif()
if(OCTAVO_COVERAGE)
  target_compile_options(octavo_flags INTERFACE --coverage)
  target_link_options(octavo_flags INTERFACE --coverage)
endif()
if(OCTAVO_FUZZ)
  target_compile_options(octavo_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

set(OCTAVO_DOORS ${PROJECT_SOURCE_DIR}/build/rooms)
include(cmake/library.cmake)
include(cmake/jumbo.cmake)

# Headers of most files, parsed once for all rooms and once for all tests: a quarter of the build. Files still include what
# they use; the presets clang and aarch64 do without.
set(OCTAVO_PRECOMPILED <algorithm> <array> <atomic> <chrono> <cmath> <cstdint> <cstring> <deque> <expected> <fstream>
    <functional> <map> <memory> <mutex> <numeric> <optional> <set> <span> <string> <string_view> <thread> <unordered_map>
    <utility> <variant> <vector> <fmt/format.h>)

# octavo_precompile(target owner header..): the target's headers, parsed for the owner, which compiles with the same flags.
function(octavo_precompile target owner)
  if(target STREQUAL owner)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM ${owner})
  endif()
endfunction()

# octavo_objects(target type source..): compiles once for the program and for liboctavo. With hidden symbols -fPIC calls as
# directly as a program's -fPIE.
function(octavo_objects target)
  add_library(${target} ${ARGN})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME octavo_${target} POSITION_INDEPENDENT_CODE ON
                        CXX_VISIBILITY_PRESET hidden LINKER_LANGUAGE CXX)
endfunction()

add_custom_target(unit_tests)  # what ctest -L unit runs
if(OCTAVO_HEADER_CHECKS)
  add_custom_target(header_checks)
endif()

# octavo_tests(name executable label shards): ctest runs the cases of a GoogleTest executable in that many processes. One for
# each case would take longer to start than most cases take to run.
function(octavo_tests name executable label shards)
  foreach(shard RANGE 1 ${shards})
    math(EXPR index "${shard} - 1")
    set(test ${name}.${label}.${shard})
    add_test(NAME ${test} COMMAND ${executable} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(${test} PROPERTIES LABELS ${label} TIMEOUT 1800 COST ${shards}
                         ENVIRONMENT "GTEST_TOTAL_SHARDS=${shards};GTEST_SHARD_INDEX=${index}")
  endforeach()
endfunction()

# octavo_take(taken list expression): moves the elements that match to another list.
macro(octavo_take taken list expression)
  set(${taken} ${${list}})
  list(FILTER ${taken} INCLUDE REGEX ${expression})
  list(FILTER ${list} EXCLUDE REGEX ${expression})
endmacro()

# octavo_room(name DEPS rooms.. LIBRARIES targets.. PRIVATE_LIBRARIES targets.. GENERATED files.. WITHOUT expressions..
#             ALONE expressions.. COLD expressions.. TEST_DEPS targets.. TESTS files.. JUMBO_TESTS SHARDS n)
# The room's headers include LIBRARIES, only its sources include PRIVATE_LIBRARIES.
# No file is listed. In the room's folder, x_test.cc and testing/x.cc become one executable <name>_test, which ctest runs in
# n processes (1). Each x_bench.cc and x_fuzz.cc becomes a separate executable. All other .cc files are sources. Files that
# match an expression in WITHOUT belong to other targets. GENERATED and TESTS add files of other folders.
# No jumbo file includes the sources that match an expression in ALONE (cmake/jumbo.cmake). Sources that match an expression in
# COLD run at the start or seldom; they compile with little optimisation, in two thirds of the time. With JUMBO_TESTS the tests are in
# jumbo files, too: it pays where each test reads many headers.
function(octavo_room name)
  cmake_parse_arguments(ROOM "JUMBO_TESTS" "SHARDS"
    "DEPS;LIBRARIES;PRIVATE_LIBRARIES;GENERATED;WITHOUT;ALONE;COLD;TEST_DEPS;TESTS" ${ARGN})
  if(ROOM_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "octavo_room(${name}): ${ROOM_UNPARSED_ARGUMENTS} is not an argument: files are not listed, the room has those of its folder")
  endif()
  file(GLOB_RECURSE sources RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS *.cc *.h)
  list(SORT sources)
  list(JOIN ROOM_WITHOUT "|" without)
  list(FILTER sources EXCLUDE REGEX "^(${without})$")
  octavo_take(headers sources "[.]h$")
  octavo_take(tests sources "_test[.]cc$|(^|/)testing/")
  octavo_take(benches sources "_bench[.]cc$")
  octavo_take(fuzzers sources "_fuzz[.]cc$")
  list(APPEND sources ${ROOM_GENERATED})
  list(APPEND tests ${ROOM_TESTS})

  # One for all presets and the wheel: what they compile alike has the same command line, and ccache keeps it once.
  set(door ${OCTAVO_DOORS}/${name})
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR}/src ${CMAKE_CURRENT_SOURCE_DIR})  # "kv", "fleet/view"
  cmake_path(GET folder PARENT_PATH floor)
  file(MAKE_DIRECTORY ${door}/${floor})
  set(leads_to "")
  if(IS_SYMLINK ${door}/${folder})
    file(READ_SYMLINK ${door}/${folder} leads_to)
  endif()
  if(NOT leads_to STREQUAL CMAKE_CURRENT_SOURCE_DIR)  # another preset may be compiling
    file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${door}/${folder} SYMBOLIC)
  endif()

  # Every header must compile alone: checked where OCTAVO_HEADER_CHECKS is on.
  set(checks "")
  if(OCTAVO_HEADER_CHECKS)
    foreach(header IN LISTS headers)
      string(MAKE_C_IDENTIFIER ${header} id)
      set(check ${CMAKE_BINARY_DIR}/header_checks/${name}_${id}.cc)
      file(CONFIGURE OUTPUT ${check} CONTENT "#include \"${folder}/${header}\"\n")
      list(APPEND checks ${check})
    endforeach()
    if(checks)
      add_library(${name}_headers OBJECT ${checks})
      target_link_libraries(${name}_headers PRIVATE ${name} ${ROOM_TEST_DEPS} GTest::gmock)
      add_dependencies(header_checks ${name}_headers)
    endif()
  endif()

  set(cold_sources "")
  if(ROOM_COLD)
    list(JOIN ROOM_COLD "|" cold)
    octavo_take(cold_sources sources "^(${cold})$")
  endif()
  octavo_jumbo(sources ${name} ${folder} "${ROOM_ALONE}" ${sources})
  octavo_objects(${name} STATIC ${sources})
  target_include_directories(${name} PUBLIC ${door})
  target_link_libraries(${name} PUBLIC octavo_flags ${ROOM_DEPS} ${ROOM_LIBRARIES}
                        PRIVATE ${ROOM_PRIVATE_LIBRARIES})
  if(cold_sources)
    octavo_jumbo(cold_sources ${name}_cold ${folder} "${ROOM_ALONE}" ${cold_sources})
    octavo_objects(${name}_cold OBJECT ${cold_sources})
    target_compile_options(${name}_cold PRIVATE $<$<CONFIG:Release>:-O1>)
    target_include_directories(${name}_cold PUBLIC ${door})
    target_link_libraries(${name}_cold PRIVATE octavo_flags ${ROOM_DEPS} ${ROOM_LIBRARIES} ${ROOM_PRIVATE_LIBRARIES})
    octavo_precompile(${name}_cold yaml_cold ${OCTAVO_PRECOMPILED})
    target_link_libraries(${name} PUBLIC ${name}_cold)
  endif()
  if(sources)
    octavo_precompile(${name} base ${OCTAVO_PRECOMPILED})
  endif()

  if(tests)
    if(ROOM_JUMBO_TESTS)
      octavo_jumbo(tests ${name}_test ${folder} "${ROOM_ALONE}" ${tests})
    endif()
    add_executable(${name}_test ${tests})
    add_dependencies(unit_tests ${name}_test)
    target_link_libraries(${name}_test PRIVATE ${name} ${ROOM_TEST_DEPS} GTest::gmock GTest::gtest_main)
    target_compile_options(${name}_test PRIVATE $<$<CONFIG:Release>:-O1>)  # tests are compiled more often than they are run
    if(OCTAVO_SANITIZE MATCHES undefined)
      # Checks in the tests' own expressions are half of what a sanitized test takes to compile.
      target_compile_options(${name}_test PRIVATE -fno-sanitize=undefined)
    endif()
    octavo_precompile(${name}_test base_test ${OCTAVO_PRECOMPILED} <gmock/gmock.h> <gtest/gtest.h>)
    if(NOT ROOM_SHARDS)
      set(ROOM_SHARDS 1)
    endif()
    octavo_tests(${name} ${name}_test unit ${ROOM_SHARDS})
  endif()
  foreach(bench IN LISTS benches)
    get_filename_component(target ${bench} NAME_WE)
    add_executable(${target} ${bench})
    target_link_libraries(${target} PRIVATE ${name} ${ROOM_TEST_DEPS} benchmark::benchmark_main)
  endforeach()
  if(OCTAVO_FUZZ)
    foreach(fuzzer IN LISTS fuzzers)
      get_filename_component(target ${fuzzer} NAME_WE)
      add_executable(${target} ${fuzzer})
      target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
      target_link_libraries(${target} PRIVATE ${name} ${ROOM_TEST_DEPS})
      target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    endforeach()
  endif()
endfunction()
