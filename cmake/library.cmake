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
