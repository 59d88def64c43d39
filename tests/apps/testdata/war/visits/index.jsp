<%@ page contentType="text/plain" session="false" import="java.nio.file.*" %><%
  Path book = Paths.get(System.getProperty("data.dir"), "visits");
  Files.writeString(book, request.getParameter("name") + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
  out.print("visitors: " + String.join(", ", Files.readAllLines(book)));
%>
