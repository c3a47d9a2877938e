# octavo_library(target header library): finds a library of the system by its header and its name, and makes the target
# System::<target>. pkg-config also gives the include folders of the library's dependencies. Their order changes when CMake
# runs again, and then every file with these flags compiles again.
function(octavo_library target header library)
  string(TOUPPER ${target} variable)
  find_path(${variable}_HEADERS ${header} PATH_SUFFIXES ${ARGN} REQUIRED)
  find_library(${variable}_LIBRARY ${library} REQUIRED)
  if(NOT TARGET System::${target})
    add_library(System::${target} INTERFACE IMPORTED GLOBAL)
    target_include_directories(System::${target} SYSTEM INTERFACE ${${variable}_HEADERS})
    target_link_libraries(System::${target} INTERFACE ${${variable}_LIBRARY})
  endif()
endfunction()

# octavo_pkg_config(target module): makes the target System::<target> from one call of pkg-config, for a library with many
# dependencies. pkg_check_modules() calls pkg-config 13 times, and each call takes 0.5 s for grpc++.
function(octavo_pkg_config target module)
  if(TARGET System::${target})
    return()
  endif()
  find_package(PkgConfig REQUIRED)
  execute_process(COMMAND ${PKG_CONFIG_EXECUTABLE} --cflags --libs ${module}
    OUTPUT_VARIABLE flags ERROR_VARIABLE error RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "pkg-config does not find ${module}: ${error}")
  endif()
  separate_arguments(flags UNIX_COMMAND "${flags}")
  list(REMOVE_DUPLICATES flags)
  set(libraries ${flags})
  list(FILTER libraries INCLUDE REGEX "^-[lL]")
  list(FILTER flags EXCLUDE REGEX "^-[lL]")
  add_library(System::${target} INTERFACE IMPORTED GLOBAL)
  target_compile_options(System::${target} INTERFACE ${flags})
  target_link_libraries(System::${target} INTERFACE ${libraries})
endfunction()
