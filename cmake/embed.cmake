# cmake -DOUTPUT=f.cc -DNAMESPACE=a::b -P embed.cmake name=file ..: a source file with each file's bytes as a
# std::string_view `name`.
set(out "#include <string_view>\n\nnamespace ${NAMESPACE} {\n\n")
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE ${last})
  if(NOT "${CMAKE_ARGV${i}}" MATCHES "^([a-z_]+)=(.+)$")
    continue()
  endif()
  set(name ${CMAKE_MATCH_1})
  file(READ ${CMAKE_MATCH_2} bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
  string(APPEND out "static constexpr char ${name}_bytes[] = {${bytes}};\n"
                    "extern const std::string_view ${name};\n"
                    "const std::string_view ${name}(${name}_bytes, sizeof ${name}_bytes);\n\n")
endforeach()
file(WRITE ${OUTPUT} "${out}}\n")
