# octavo_library(target header library): a library of the system by its header and its name, as the target System::<target>.
# pkg-config is not asked: it adds the include folders of what the library was built with, in an order that changes when
# CMake runs again, and every file that sees them would be compiled again.
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
